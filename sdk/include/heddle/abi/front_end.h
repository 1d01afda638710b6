/* heddle/abi/front_end.h - what a node type says to front ends alone: more flags of
 * heddle_node_desc. Neither binding nor running reads them. */
#ifndef HEDDLE_ABI_FRONT_END_H
#define HEDDLE_ABI_FRONT_END_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shows something, though it is no sink: "has_intermediate_output" of /object_info. */
#define HEDDLE_NODE_INTERMEDIATE_OUTPUT (1u << 31)

#ifdef __cplusplus
}
#endif
#endif
