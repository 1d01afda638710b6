/* heddle/abi/front_end.h - what a node type says to front ends: more flags of heddle_node_desc. */
#ifndef HEDDLE_ABI_FRONT_END_H
#define HEDDLE_ABI_FRONT_END_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shows something, though it is no sink: "has_intermediate_output" of /object_info. It is shown
 * again in runs in which only what reads the node is taken from the cache. */
#define HEDDLE_NODE_INTERMEDIATE_OUTPUT (1u << 31)
/* For those who write nodes; front ends hide it: "dev_only". */
#define HEDDLE_NODE_DEV_ONLY (1u << 30)

#ifdef __cplusplus
}
#endif
#endif
