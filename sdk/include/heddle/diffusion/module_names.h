/* heddle/diffusion/module_names.h - the names by which files of patches (LoRA) call the modules of
 * a model.
 *
 * A patch names modules as the program that trained it did, a checkpoint its tensors as the program
 * that wrote it did: "attn.to_q" may be a third of the rows of "img_attn.qkv". Who knows a family
 * tells what each name means in a given checkpoint. For a family of which no desc tells, a module's
 * name is that of its tensor without ".weight" or ".bias". */
#ifndef HEDDLE_DIFFUSION_MODULE_NAMES_H
#define HEDDLE_DIFFUSION_MODULE_NAMES_H

#include "../abi/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_MODULE_NAMES \
  "heddle.field.module_names/0" /* provide -> heddle_list of heddle_module_names_desc */

/* `module` is dotted, without what training programs put in front ("transformer.",
 * "diffusion_model."); `kind` is "weight" or "bias"; the parts are the module's rows in its own
 * order. Everything is borrowed for the call. */
typedef void (*heddle_module_found)(void* to, const char* module, const char* kind,
                                    uint32_t part_count, const heddle_part* const* parts);

/* A tensor as the files have it that the model was first published in: its whole name and its rows.
 * shape: NULL, or as many elements as the rows have. Everything is borrowed for the call. */
typedef void (*heddle_original_found)(void* to, const char* tensor, uint32_t part_count,
                                      const heddle_part* const* parts, uint32_t rank,
                                      const int64_t* shape);

typedef struct heddle_module_names_desc {
  uint32_t size;
  const char* family; /* of the models, as their heddle_model_desc says: "flux" */
  const char* doc;
  /* Hands every name of every module that the checkpoint has. [any] */
  heddle_status* (*list)(const heddle_host*, const heddle_checkpoint*, heddle_module_found found,
                         void* to);
  /* optional: hands every tensor of the original file that this checkpoint has, whoever wrote it.
   * What it does not hand has one name everywhere. [any] */
  heddle_status* (*originals)(const heddle_host*, const heddle_checkpoint*,
                              heddle_original_found found, void* to);
} heddle_module_names_desc;

#ifdef __cplusplus
}
#endif
#endif
