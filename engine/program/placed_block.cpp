#include "engine/program/placed_block.h"

#include <algorithm>
#include <variant>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

Operand PlacedBlock::in_plan(const Operand& local) const {
  if (local.storage < 0) return local;
  const Operand& there = base[local.storage];
  if (there.storage < 0)
    throw Error(Code::invalid_argument,
                cat("block ", block.node->id,
                    " reads elements of an input that it declares to read by shape only"));
  return Operand{there.storage, there.offset_bytes + local.offset_bytes, local.info};
}

const Source* PlacedBlock::input_that_is(const Operand& operand) const {
  for (std::uint32_t i = 0; i < block.node->inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&block.node->inputs[i]);
    const auto& input = inputs[i];
    if (link != nullptr && input && input->storage == operand.storage &&
        input->offset_bytes == operand.offset_bytes && input->info.dtype == operand.info.dtype &&
        same_shape(input->info, operand.info) &&
        std::ranges::equal(input->info.stride, operand.info.stride))
      return link;
  }
  return nullptr;
}

}  // namespace heddle::engine
