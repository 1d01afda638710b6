/* heddle/abi/model.h - a model is a graph too.
 *
 * A model family looks at a checkpoint and declares its block graph with the same words a workflow
 * uses: nodes, links, inputs, outputs. The only new word is "weight": a named slot of a node,
 * filled from the checkpoint. The planner then places blocks, inserts transfers where a link
 * crosses devices, and inserts page-ins where weights do not all fit. A block does not know any of
 * this. */
#ifndef HEDDLE_ABI_MODEL_H
#define HEDDLE_ABI_MODEL_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_MODELS \
  "heddle.models/0" /* heddle_plugin.provide -> heddle_list of heddle_model_desc */

typedef struct heddle_checkpoint
    heddle_checkpoint; /* safetensors, one file or sharded, or gguf; mapped by the engine */
typedef struct heddle_graph heddle_graph; /* under construction; valid during build() only */
typedef uint32_t heddle_node_id; /* of a node in that graph, as add() gave it               */
#define HEDDLE_GRAPH_ITSELF \
  ((heddle_node_id)0) /* where a link begins that comes from an input of the graph */

#define HEDDLE_SERVICE_CHECKPOINT "heddle.checkpoint/0"
typedef struct heddle_checkpoint_service {
  /* path: a .safetensors or .gguf file, an index file of shards, or a folder that holds one of
   * them. Reads headers only; the same file is mapped once. The result is yours. [any] */
  heddle_status* (*open)(const heddle_host*, const char* path, heddle_checkpoint** out);
  /* The tensors whose names begin with prefix, without it ("vae."). May be empty. Yours. [any] */
  heddle_status* (*sub)(const heddle_checkpoint*, const char* prefix, heddle_checkpoint** out);
  void (*retain)(heddle_checkpoint*);
  void (*release)(heddle_checkpoint*); /* NULL is fine */
  uint32_t (*count)(const heddle_checkpoint*);
  const char* (*name)(const heddle_checkpoint*, uint32_t index); /* sorted; NULL: out of range */
  const heddle_tensor_info* (*find)(const heddle_checkpoint*,
                                    const char* tensor_name);     /* NULL if absent */
  const char* (*meta)(const heddle_checkpoint*, const char* key); /* NULL if absent */
  const char* (*path)(const heddle_checkpoint*);                  /* for messages */
  /* The elements of a small tensor of any type, as numbers; fails when it has not `count` of them.
   * [any] */
  heddle_status* (*numbers)(const heddle_checkpoint*, const char* tensor_name, uint32_t count,
                            double* out);
  /* The same tensors, whose matrices (HEDDLE_USE_LINEAR) devices keep as an f8 type, each number
   * rounded once. Fails when tensors are in blocks already. Yours. [any] */
  heddle_status* (*cast)(const heddle_checkpoint*, heddle_dtype f8, heddle_checkpoint** out);
  /* As cast() to f8_e4m3, and devices that can multiply such numbers may do so
   * (HEDDLE_USE_LINEAR_FP8): faster, and rounded more. Yours. [any] */
  heddle_status* (*scale_to_fp8)(const heddle_checkpoint*, heddle_checkpoint** out);
} heddle_checkpoint_service;

/* Rows [begin, end) of a checkpoint tensor along axis 0; end HEDDLE_ALL_ROWS: up to the last. A
 * slot filled from several parts holds them one after another along axis 0 (a fused QKV matrix from
 * three tensors). frame n, counted from 1: of filters over frames, (O, C, T, R, S) or (O, C, T),
 * those of the nth, (O, C, R, S) or (O, C); all parts of a slot have the same. -n: of one part, all
 * of (C, O, T), the nth transposed, (O, C). 0, and where `size` ends before it: all of the tensor.
 */
typedef struct heddle_part {
  uint32_t size;
  const char* tensor;
  int64_t begin, end;
  int64_t frame;
} heddle_part;
#define HEDDLE_ALL_ROWS ((int64_t)-1)

/* A segment of a weight along the axis by which devices may divide it: whole units are given out. A
 * fused QKV matrix has three segments, each divided for itself, and a unit is one head. */
typedef struct heddle_segment {
  uint32_t size;
  int64_t length, unit;
} heddle_segment;

#define HEDDLE_SERVICE_GRAPH "heddle.graph/0"
typedef struct heddle_graph_service {
  /* name is the node's path in plans and errors: "double.3". A group is everything under one path
   * ("double.3.attn", "double.3.mlp"): the planner never cuts inside a group. [call], all of them
   */
  heddle_status* (*add)(heddle_graph*, const char* type, const char* name, heddle_node_id* out);
  heddle_status* (*set)(heddle_graph*, heddle_node_id, const char* input,
                        heddle_value* literal); /* takes it */
  heddle_status* (*weight)(heddle_graph*, heddle_node_id, const char* slot, uint32_t count,
                           const heddle_part* const* parts);
  heddle_status* (*link)(heddle_graph*, heddle_node_id from, const char* output, heddle_node_id to,
                         const char* input);
  heddle_status* (*input)(heddle_graph*, const char* name, uint32_t flags);
  heddle_status* (*output)(heddle_graph*, heddle_node_id from, const char* output,
                           const char* name);
  heddle_status* (*setting)(heddle_graph*, const char* key,
                            heddle_value*); /* takes it; see model service */
  /* Allows a filled slot to be divided along an axis; the lengths add up to its size there. */
  heddle_status* (*shard)(heddle_graph*, heddle_node_id, const char* slot, int32_t axis,
                          uint32_t count, const heddle_segment* const* segments);
} heddle_graph_service;
enum {
  HEDDLE_INPUT_PER_STEP = 0, /* changes at every step                                            */
  HEDDLE_INPUT_LOOP_INVARIANT = 1, /* the same at every step: what reads only constants runs once */
  HEDDLE_INPUT_PRECOMPUTED =
      2, /* (steps, ...): what reads only these and constants runs for all steps at once */
  HEDDLE_INPUT_PHASE_MASK = 3,
  HEDDLE_INPUT_OPTIONAL = 1u << 2,
  HEDDLE_INPUT_BATCH = 1u << 3 /* axis 0 is a batch: items are independent */
};

typedef struct heddle_model_desc {
  uint32_t size;
  uint32_t version;
  const char* family; /* "flux" */
  const char* role;   /* what a loader asks for: "diffusion_model", "text_encoder", ... */
  /* 0: not ours. Otherwise how specific the match is; the highest answer wins. Names, shapes and
   * config only. config: the model's configuration as a record, or none. [any] */
  int32_t (*match)(const heddle_host*, const heddle_checkpoint*, const heddle_value* config);
  heddle_status* (*build)(const heddle_host*, const heddle_checkpoint*, const heddle_value* config,
                          heddle_graph*); /* [call] */
  const char* doc;                        /* optional: NULL or a sentence for people */
} heddle_model_desc;

/* A change of weights: rows of a model's tensors become keep * rows + scale * up * down. `up`
 * (rows, rank) and `down` (rank, ...) are tensors of the patches' own checkpoint; where down is
 * NULL, `up` is the whole difference (rows, ...), and where up is NULL, nothing is added. `rows`
 * are parts of the model's checkpoint, one after another as many as `up` has. */
typedef struct heddle_patch {
  uint32_t size;
  uint32_t row_count;
  const char* up;
  const char* down;
  double scale;
  const heddle_part* const* rows;
  double keep; /* 1 where `size` ends before it */
} heddle_patch;

/* A tensor of a saved file: rows of a model's checkpoint, one after another, as its patches make
 * them. shape: NULL, or as many elements as the rows have. dtype: f32, f16, bf16, or 0: that of its
 * own file. */
typedef struct heddle_saved_tensor {
  uint32_t size;
  uint32_t part_count;
  const char* name;
  const heddle_value* model;
  const heddle_part* const* parts;
  const int64_t* shape;
  uint32_t rank;
  heddle_dtype dtype;
} heddle_saved_tensor;

/* MODEL values: {graph, weights, patches, settings, hints}, immutable; with_... shares everything
 * else. [any] */
#define HEDDLE_SERVICE_MODEL "heddle.model/0"
typedef struct heddle_model_service {
  /* Asks the families of that role; fails naming the families asked when none matches. Yours. */
  heddle_status* (*build)(heddle_ctx*, const char* role, heddle_checkpoint*,
                          const heddle_value* config, heddle_value** out);
  heddle_status* (*settings)(const heddle_value* model, const heddle_value** record); /* borrowed */
  heddle_status* (*with_settings)(const heddle_value* model, const heddle_value* record,
                                  heddle_value** out);
  heddle_status* (*family)(const heddle_value* model, const char** out); /* borrowed */
  uint32_t (*input_count)(const heddle_value* model);
  const char* (*input)(const heddle_value* model, uint32_t index,
                       uint32_t* flags); /* NULL: out of range */
  heddle_status* (*checkpoint)(const heddle_value* model,
                               heddle_checkpoint** out); /* where its weights are; yours */
  /* The model with these patches added to its weights, after those it has. They are merged in f32
   * when a weight is made on a device; the file and what is shared of it in memory stay as they
   * are. Fails when a patch does not fit. */
  heddle_status* (*with_patches)(const heddle_value* model, heddle_checkpoint* file, uint32_t count,
                                 const heddle_patch* const* patches, heddle_value** out);
  /* The same with tensors of another model in the place of `up`, as that model's own patches make
   * them. */
  heddle_status* (*merge)(const heddle_value* model, const heddle_value* other, uint32_t count,
                          const heddle_patch* const* patches, heddle_value** out);
  /* Its family's graph for another configuration over the same weights, with the same patches and
   * hints. [call] */
  heddle_status* (*rebuild)(heddle_ctx*, const heddle_value* model, const heddle_value* config,
                            heddle_value** out);
  /* A new safetensors file of these tensors, each in its type; sums are made in f32
   * and rounded once. metadata: pair_count keys, each with its text behind it. created is 0, and
   * nothing is written, where something has that path. [call] */
  heddle_status* (*save)(heddle_ctx*, const char* path, uint32_t count,
                         const heddle_saved_tensor* const* tensors, uint32_t pair_count,
                         const char* const* metadata, int32_t* created);
  /* The model, to run on these devices ("cuda:1", "cpu", or "gpu:1" as ComfyUI counts them) where
   * such are there; a device that a workflow's keys name counts more. */
  heddle_status* (*prefer)(const heddle_value* model, const char* devices, heddle_value** out);
  /* The model without some of its blocks: what reads their outputs reads what their inputs of the
   * same names get. A path is a block's, or a group's ("double.7"); one that the model has not
   * leaves nothing out. Fails where a block makes something that nothing can take the place of.
   * Weights are shared with the model. Yours. */
  heddle_status* (*without_blocks)(const heddle_value* model, uint32_t count,
                                   const char* const* paths, heddle_value** out);
  /* Rows of the model's checkpoint, one after another, as its patches make them, in f32: `count`
   * floats, which is as many as they have. Fails for weights of 8 bits or in blocks. [call] */
  heddle_status* (*read)(heddle_ctx*, const heddle_value* model, uint32_t part_count,
                         const heddle_part* const* parts, float* out, uint64_t count);
} heddle_model_service;

#ifdef __cplusplus
}
#endif
#endif
