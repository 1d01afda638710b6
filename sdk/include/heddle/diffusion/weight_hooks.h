/* heddle/diffusion/weight_hooks.h - changes of a model's weights that hold for some conditionings
 * only (HOOKS of values.h): who reads the files that they come from. */
#ifndef HEDDLE_DIFFUSION_WEIGHT_HOOKS_H
#define HEDDLE_DIFFUSION_WEIGHT_HOOKS_H

#include "../abi/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_WEIGHT_HOOKS \
  "heddle.field.weight_hooks/0" /* provide -> heddle_list of heddle_weight_hooks_desc */

typedef struct heddle_weight_hooks_desc {
  uint32_t size;
  const char* kind; /* of the hooks, as their records say: "lora" */
  const char* doc;
  /* The model with the hook's change added `strength` times. hook: a record of a HOOKS value.
   * encoder: the name of the text encoder ("clip_l", "t5xxl") whose model it is; NULL: a diffusion
   * model. Gives the model as it is where the hook has nothing for it, and fails where it has, but
   * not for such a model. Reads headers only. Yours. [any] */
  heddle_status* (*apply)(const heddle_host*, const heddle_value* hook, const heddle_value* model,
                          const char* encoder, double strength, heddle_value** out);
} heddle_weight_hooks_desc;

#ifdef __cplusplus
}
#endif
#endif
