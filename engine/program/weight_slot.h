// The numbers of a node's weights: its slots, and behind them three for each slot: the two factors
// of what patches add beside a quantised matrix, and what its columns are scaled by. Plans treat
// them as weights like others. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/model.h"
#include "heddle/abi/value.h"

namespace heddle::engine {

// down: (rank, columns), up: (rows, rank), scale: (columns), column_factors() (joined_dtype.h).
enum class WeightPiece { whole, down, up, scale };
inline constexpr WeightPiece kPiecesBeside[] = {WeightPiece::down, WeightPiece::up,
                                                WeightPiece::scale};

struct WeightSlot {
  std::uint32_t slot = 0;
  WeightPiece piece = WeightPiece::whole;
};

WeightSlot weight_slot(const Node& node, std::uint32_t number);
std::uint32_t weight_number(const Node& node, WeightSlot slot);

// For people: "img.qkv.weight", "the patch of img.qkv.weight".
std::string weight_name(const Node& node, std::uint32_t number);

// What the file has of a weight; 0: it is put together in host memory, of patches.
std::uint64_t file_bytes(const Model& model, const Node& node, std::uint32_t number);

// By slot, for what stands beside its matrix; nothing: nothing does. down and up come together.
struct FactorInfos {
  std::optional<heddle_tensor_info> down = {}, up = {}, scale = {};

  std::optional<heddle_tensor_info>& of(WeightPiece piece);  // but `whole`
  const std::optional<heddle_tensor_info>& of(WeightPiece piece) const;
};
using SlotFactors = std::vector<std::optional<FactorInfos>>;

// As devices that compute in `compute` have them, whole. Empty: no slot of the node has any.
// Throws what WeightSource::info() does.
SlotFactors slot_factors(const Model& model, const Node& node, heddle_dtype compute);

}  // namespace heddle::engine
