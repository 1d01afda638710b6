#include "engine/program/weight_slot.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/files/joined_dtype.h"
#include "engine/files/weight_patches.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

WeightSlot weight_slot(const Node& node, std::uint32_t number) {
  const auto slots = std::uint32_t(node.weights.size());
  if (number < slots) return {number, WeightPiece::whole};
  const std::uint32_t factor = number - slots;
  return {factor / 2, factor % 2 == 0 ? WeightPiece::down : WeightPiece::up};
}

std::uint32_t weight_number(const Node& node, WeightSlot slot) {
  if (slot.piece == WeightPiece::whole) return slot.slot;
  return std::uint32_t(node.weights.size()) + 2 * slot.slot +
         (slot.piece == WeightPiece::down ? 0 : 1);
}

std::string weight_name(const Node& node, std::uint32_t number) {
  const WeightSlot slot = weight_slot(node, number);
  const std::string_view name = node.type->slot(slot.slot).name;
  return slot.piece == WeightPiece::whole ? std::string(name) : cat("the patch of ", name);
}

std::uint64_t file_bytes(const Model& model, const Node& node, std::uint32_t number) {
  if (weight_slot(node, number).piece != WeightPiece::whole) return 0;
  std::uint64_t bytes = 0;
  for (const WeightPart& part : node.weights[number]) {
    const TensorView& tensor = model.checkpoint->at(part.tensor);
    if (part.frame != 0 || tensor.packed != nullptr || tensor.is_widened)
      return 0;  // made of what is read
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
    const std::int64_t end = part.end < 0 ? rows : part.end;
    const bool is_merged =
        model.patches != nullptr && !is_patched_beside(tensor, node.type->slot(number).use) &&
        std::ranges::any_of(model.patches->of(part.tensor), [&](const WeightPatches::Term& term) {
          return term.begin < end && part.begin < term.end;
        });
    if (is_merged) return 0;
    std::int64_t width = 1;
    for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) width *= tensor.shape[axis];
    bytes += std::uint64_t(dtype_bytes(tensor.dtype, (end - part.begin) * width));
  }
  return bytes;
}

SlotFactors slot_factors(const Model& model, const Node& node, heddle_dtype compute) {
  SlotFactors all;
  if (model.patches == nullptr) return all;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
    if (node.type->slot(slot).use != HEDDLE_USE_LINEAR) continue;
    std::vector<TensorRows> parts;
    std::int64_t rows = 0, columns = 0;
    for (const WeightPart& part : node.weights[slot]) {
      const TensorView& tensor = model.checkpoint->at(part.tensor);
      if (tensor.shape.size() != 2) continue;
      parts.push_back({&tensor, part.begin, part.end < 0 ? tensor.shape[0] : part.end});
      rows += parts.back().end - parts.back().begin;
      columns = tensor.shape[1];
    }
    const std::int64_t rank = patch_factors(*model.patches, parts).rank;
    if (rank == 0) continue;
    all.resize(node.weights.size());
    all[slot] = {make_info(compute, std::vector{rank, columns}),
                 make_info(compute, std::vector{rows, rank})};
  }
  return all;
}

}  // namespace heddle::engine
