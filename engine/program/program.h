// A traced block: which ops it issues, on which pieces of memory. Independent of any device's
// addresses. A value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/op_catalog.h"
#include "heddle/abi/value.h"

namespace heddle::engine {

// A place in one of a program's storages. storage < 0: an absent operand.
struct Operand {
  std::int32_t storage = -1;
  std::uint64_t offset_bytes = 0;
  heddle_tensor_info info{};
};

struct ProgramOp {
  std::uint32_t op = 0;  // op_id
  std::vector<std::byte> attrs;
  std::vector<Operand> in, out;
};

struct ProgramStorage {
  enum class Kind { local, input, weight } kind = Kind::local;
  std::uint32_t index = 0;  // of the input port or the slot
  std::uint64_t bytes = 0;
};

struct BlockProgram {
  std::vector<ProgramStorage> storages;
  std::vector<ProgramOp> ops;
  std::vector<Operand> outputs;  // one for each output port
  OpCost cost;
};

}  // namespace heddle::engine
