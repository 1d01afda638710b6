/* heddle/diffusion/bench_shapes.h - models to be measured, by their shapes alone.
 *
 * `heddle bench` lists every desc of this kind, `heddle bench MODEL` measures one. A desc tells
 * which tensors a model of that shape has and how their numbers are spread, and a workflow that
 * calls it; the engine draws the numbers and runs the workflow as any other. */
#ifndef HEDDLE_DIFFUSION_BENCH_SHAPES_H
#define HEDDLE_DIFFUSION_BENCH_SHAPES_H

#include "../abi/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_BENCH_SHAPES \
  "heddle.field.bench_shapes/0" /* provide -> heddle_list of heddle_bench_shape_desc */

/* What is wanted; 0: what is usual for the shape. */
typedef struct heddle_bench_request {
  uint32_t size;
  uint32_t width, height; /* of the picture, in pixels */
  uint32_t steps, sets;   /* sets: of inputs in a step, 1 or 2 */
  int32_t is_small;       /* a model of this family that plain loops manage in seconds: few blocks,
                             narrow, a small picture */
  uint32_t frames;        /* of a clip */
} heddle_bench_request;

/* A tensor of a file, in row-major order. Its numbers are drawn from a normal distribution.
 * Borrowed for one call. */
typedef struct heddle_bench_tensor {
  uint32_t size;
  const char* file; /* in a models folder: "diffusion_models/flux-dev.safetensors" */
  const char* name;
  uint32_t dtype; /* HEDDLE_F32 or HEDDLE_BF16 */
  uint32_t rank;
  const int64_t* shape;
  double mean, deviation;
} heddle_bench_tensor;

/* A workflow in ComfyUI's API format. Borrowed for one call. */
typedef struct heddle_bench_workflow {
  uint32_t size;
  uint32_t width, height, steps, sets; /* as they have become */
  const char* json;
  const char* node;   /* whose calls of the model are measured: "sample" */
  const char* output; /* what is compared: "sample.LATENT" */
  const char* field;  /* of that output, when it is a record; "" otherwise */
  const char* vary;   /* an integer input: with another value nothing that is measured is known from
                         an earlier run */
  const char* weight_dtype; /* an input that says as which type weights are loaded:
                               "model.weight_dtype"; NULL: there is none */
} heddle_bench_workflow;

typedef struct heddle_bench_sink {
  uint32_t size;
  void* to;
  void (*tensor)(void* to, const heddle_bench_tensor*);     /* [call] any number of times */
  void (*workflow)(void* to, const heddle_bench_workflow*); /* [call] once */
} heddle_bench_sink;

typedef struct heddle_bench_shape_desc {
  uint32_t size;
  const char* name; /* "flux-dev" */
  const char* doc;
  /* Tells the sink. Fails with HEDDLE_INVALID_ARGUMENT for a size that the model does not take.
   * [any] */
  heddle_status* (*make)(const heddle_host*, const struct heddle_bench_shape_desc* self,
                         const heddle_bench_request*, const heddle_bench_sink*);
} heddle_bench_shape_desc;

#ifdef __cplusplus
}
#endif
#endif
