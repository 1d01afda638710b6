#include "engine/program/weight_slot.h"

#include <algorithm>
#include <iterator>

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
  const std::uint32_t beside = number - slots, count = std::size(kPiecesBeside);
  return {beside / count, kPiecesBeside[beside % count]};
}

std::uint32_t weight_number(const Node& node, WeightSlot slot) {
  if (slot.piece == WeightPiece::whole) return slot.slot;
  const auto* const at = std::ranges::find(kPiecesBeside, slot.piece);
  const std::uint32_t count = std::size(kPiecesBeside);
  return std::uint32_t(node.weights.size()) + count * slot.slot +
         std::uint32_t(at - std::begin(kPiecesBeside));
}

std::string weight_name(const Node& node, std::uint32_t number) {
  const WeightSlot slot = weight_slot(node, number);
  const std::string_view name = node.type->slot(slot.slot).name;
  if (slot.piece == WeightPiece::whole) return std::string(name);
  return cat(slot.piece == WeightPiece::scale ? "the scales of " : "the patch of ", name);
}

const std::optional<heddle_tensor_info>& FactorInfos::of(WeightPiece piece) const {
  return piece == WeightPiece::down ? down : piece == WeightPiece::up ? up : scale;
}
std::optional<heddle_tensor_info>& FactorInfos::of(WeightPiece piece) {
  return piece == WeightPiece::down ? down : piece == WeightPiece::up ? up : scale;
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
  if (model.checkpoint == nullptr) return all;
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
    if (node.type->slot(slot).use != HEDDLE_USE_LINEAR) continue;
    std::vector<TensorRows> parts;
    std::vector<const TensorView*> tensors;
    std::int64_t rows = 0, columns = 0;
    for (const WeightPart& part : node.weights[slot]) {
      const TensorView& tensor = model.checkpoint->at(part.tensor);
      if (tensor.shape.size() != 2) continue;
      parts.push_back({&tensor, part.begin, part.end < 0 ? tensor.shape[0] : part.end});
      tensors.push_back(&tensor);
      rows += parts.back().end - parts.back().begin;
      columns = tensor.shape[1];
    }
    if (parts.empty()) continue;
    FactorInfos beside;
    const std::int64_t rank =
        model.patches == nullptr ? 0 : patch_factors(*model.patches, parts).rank;
    if (rank > 0) {
      beside.down = make_info(compute, std::vector{rank, columns});
      beside.up = make_info(compute, std::vector{rows, rank});
    }
    if (column_factors(*tensors.front()) != nullptr &&
        is_block_format(joined_dtype(tensors, HEDDLE_USE_LINEAR)))
      beside.scale = make_info(compute, std::vector{columns});
    if (!beside.down && !beside.scale) continue;
    all.resize(node.weights.size());
    all[slot] = beside;
  }
  return all;
}

}  // namespace heddle::engine
