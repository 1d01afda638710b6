/* heddle/abi/infer.h - what a node's outputs will be, and what it will cost, before it runs. */
#ifndef HEDDLE_ABI_INFER_H
#define HEDDLE_ABI_INFER_H

#include "call.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_infer
    heddle_infer; /* one question about one workflow node; valid until infer() returns */

/* What is known of the inputs, what the outputs will be. path names a part of a record or a list,
 * by keys and indices: "samples", "0.cross_attn", "positive.1.pooled_output"; "" is the value
 * itself. [any] */
#define HEDDLE_SERVICE_INFER "heddle.infer/0"
typedef struct heddle_infer_service {
  const heddle_value* (*value)(
      heddle_infer*,
      heddle_port_index input); /* a literal, or a value made while planning; NULL: unknown */
  /* A part of an input's value that is known before running; borrowed. NULL: unknown, or there is
   * no such part. */
  const heddle_value* (*part)(heddle_infer*, heddle_port_index input, const char* path);
  int32_t (*in)(heddle_infer*, heddle_port_index input, const char* path,
                heddle_tensor_info* out); /* 0: unknown */

  heddle_status* (*out)(heddle_infer*, heddle_port_index output, const char* path,
                        const heddle_tensor_info*);
  /* Tells a part of an output's value, where the whole of it is not known yet; shared. */
  heddle_status* (*known)(heddle_infer*, heddle_port_index output, const char* path,
                          const heddle_value*);
  /* Every tensor of this output is an input's, or a part of one: it takes no memory of its own. */
  heddle_status* (*shares)(heddle_infer*, heddle_port_index output);
} heddle_infer_service;

/* A call of a model that execute() is going to make, by shapes: what the planner needs to place and
 * price it. Mirrors heddle_session_open and the records given to step(). */
typedef struct heddle_named_info {
  uint32_t size;
  const char* name;
  heddle_tensor_info info;
} heddle_named_info;
typedef struct heddle_infer_set {
  uint32_t size;
  uint32_t constant_count, step_count;
  const heddle_named_info* const* constants;
  const heddle_named_info* const* steps;
} heddle_infer_set;
typedef struct heddle_infer_call {
  uint32_t size;
  uint32_t set_count, step_count, schedule_count;
  const heddle_value* model;
  const heddle_infer_set* const* sets;
  const heddle_named_info* const* schedule;
} heddle_infer_call;

/* What the node will take: of time and of memory. [any] */
#define HEDDLE_SERVICE_COST "heddle.cost/0"
typedef struct heddle_cost_service {
  /* Adds FLOPs and bytes read and written; scratch_bytes: of its device, the latest counts. */
  void (*add)(heddle_infer*, double flops, double bytes, uint64_t scratch_bytes);
  /* What the node works on in host memory, wherever it is placed, besides the scratch_bytes of
   * add(). */
  void (*host_scratch)(heddle_infer*, uint64_t bytes);
  heddle_status* (*call)(heddle_infer*,
                         const heddle_infer_call*); /* in the order execute() makes them; copied */
  /* The smallest call that a node flagged HEDDLE_NODE_TILES makes instead, where there is no room
   * for those: of several kinds all are told; copied. */
  heddle_status* (*least_call)(heddle_infer*, const heddle_infer_call*);
} heddle_cost_service;

#ifdef __cplusplus
}
#endif
#endif
