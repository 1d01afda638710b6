// What one call of a model asks of a device, block by block: the blocks are traced with the
// call's shapes, and counted. Equal blocks (type, literals, shapes) are traced once, so a model
// of a thousand blocks costs little more than its few kinds. Pure as far as blocks are; reads
// headers of checkpoints, not weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/model.h"
#include "engine/program/infer.h"
#include "engine/program/op_work.h"
#include "engine/program/session_plan.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

// A block for one set, each time it runs; a precomputed block runs for all steps at once.
struct BlockWork {
  double flops = 0, bytes = 0;   // of its ops: read and written
  std::vector<BlockOp> ops;      // in the order of launching
  std::uint64_t peak_bytes = 0;  // the most it has allocated at one time, its outputs included
  std::vector<std::uint64_t> output_bytes;  // by port
};

struct BlockLoad {
  std::uint32_t group = 0;  // blocks of one group are never cut apart
  Phase phase = Phase::per_step;
  bool by_tokens = false,
       by_rows = false;            // whether a group may divide it; else its first device runs it
  std::uint64_t weight_bytes = 0;  // in the compute type
  std::uint64_t whole_bytes = 0;   // of these, in weights that stay whole when rows are divided
  std::uint32_t weights = 0, whole_weights = 0;
  struct SlotBytes {
    std::uint64_t bytes = 0;
    std::uint64_t of_file = 0;  // file_bytes()
  };
  std::vector<SlotBytes> slot_bytes;  // of the weights that are given, in the order of slots, and
                                      // of what is added beside them
  std::vector<std::uint32_t> work;    // by set: an index into CallLoad::works
};

struct CallLoad {
  std::vector<std::string> groups;  // "double.3", in the order of the graph
  std::vector<BlockLoad> blocks;    // by node
  std::vector<BlockWork> works;     // the distinct ones
  std::vector<std::vector<std::uint64_t>>
      input_bytes;  // by set and input of the graph; a precomputed input: one step's
  std::uint32_t set_count = 1, step_count = 1;
  Phase main = Phase::per_step;  // of most blocks: loop_invariant for a model that is called once
  std::int64_t batch = 1;        // items along the batch axis; 1 when no input has one
  std::uint64_t weight_bytes = 0;
  std::uint32_t weights = 0, whole_weights = 0;
  std::uint64_t whole_bytes = 0;
  std::vector<std::string>
      whole;  // which of them: slots, with the number of blocks where it is more than one

  // What one of several devices has of the weights, as a fraction of the tokens or rows is its own.
  std::uint64_t rank_bytes(ParallelMode mode, double fraction, bool is_first) const;

  double repeats() const {
    return main == Phase::per_step ? step_count : 1;
  }                           // of the blocks of the main rate
  double step_flops() const;  // of all branches, in blocks of the main rate
  const BlockWork& work(std::uint32_t block, std::uint32_t set) const {
    return works[blocks[block].work[set]];
  }
};

// Throws, with the block's name, what the blocks refuse, and what is missing in the call. Weights
// of a float type are counted in `compute`, others as they are in the file.
CallLoad call_load(const Model& model, const CallSpec& spec, heddle_dtype compute);

// The same of a model alone, while nobody knows the call: no sets, so weights are all there is.
CallLoad weight_load(const Model& model, heddle_dtype compute);

// The load of a call for a compute type; nullptr when it cannot be told.
using LoadOf =
    std::function<std::shared_ptr<const CallLoad>(const CallSpec&, heddle_dtype compute)>;

// The weight of a number (weight_slot.h) of a node, its parts joined, in the type that a device
// computes with; matrices and tables in blocks and matrices of 8 bits stay so. Nothing: not given.
std::optional<heddle_tensor_info> weight_info(const Model& model, const Node& node,
                                              std::uint32_t slot, heddle_dtype compute);

// The type of a weight there: `joined` is that of its parts, `use` a HEDDLE_USE_.
heddle_dtype plain_dtype(DType joined, std::int32_t use, std::size_t rank, heddle_dtype compute);

// Whether dividing a weight that way would cut through blocks of a block format.
bool cuts_blocks(const WeightShard& shard, const heddle_tensor_info& info);

// The group of a block by its path: "double.3" for "double.3.attn" and for "double.3"; "embed" for
// "embed.rope".
std::string_view group_of(std::string_view path);

}  // namespace heddle::engine
