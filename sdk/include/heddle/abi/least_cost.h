/* heddle/abi/least_cost.h - what a node that calls models in tiles works on beside the smallest
 * ones. */
#ifndef HEDDLE_ABI_LEAST_COST_H
#define HEDDLE_ABI_LEAST_COST_H

#include "infer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Optional: without it a node needs the scratch_bytes of heddle_cost_service::add() with tiles,
 * too, so that it is refused where these alone have no room. [any] */
#define HEDDLE_SERVICE_LEAST_COST "heddle.least_cost/0"
typedef struct heddle_least_cost_service {
  /* Bytes on its device, besides the calls that heddle_cost_service::least_call() tells of; the
   * latest counts. Of a node flagged HEDDLE_NODE_TILES. */
  void (*scratch)(heddle_infer*, uint64_t bytes);
} heddle_least_cost_service;

#ifdef __cplusplus
}
#endif
#endif
