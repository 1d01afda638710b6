// Traces a block: calls its execute() with tensors that have shapes but no data, and writes down
// the ops. Every op is checked while it is traced, so that a fault names the block before anything
// ran. Pure as far as blocks are.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/program/program.h"
#include "engine/program/weight_slot.h"

namespace heddle::engine {

struct BlockSpec {
  const Node* node = nullptr;
  heddle_dtype compute = HEDDLE_F32;
  std::string device;  // for the block's curiosity and for messages
  std::vector<std::optional<heddle_tensor_info>>
      inputs;  // one for each port; nothing: literal or absent
  std::vector<std::optional<heddle_tensor_info>>
      weights;  // one for each slot, in the device's layout; nothing: not given
  SlotFactors factors =
      {};  // by slot, in the device's layout; empty: no patch is added beside a GEMM
  heddle_group group{sizeof(heddle_group), HEDDLE_GROUP_NONE, 0, 1};
  std::vector<std::optional<heddle_shard>>
      shards;  // of inputs that hold a part of the tokens; may be shorter than inputs
};

// Throws what the block threw, with a frame naming it.
BlockProgram trace_block(const BlockSpec& spec);

}  // namespace heddle::engine
