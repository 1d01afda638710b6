// plugins/denoisers/minimax_sizes.h - what a file of MiniMax H3 holds, read off its tensors, and
// what samplers are told of it. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/model.hpp>

#include "minimax_names.h"

namespace heddle::denoisers {

struct MinimaxSizes {
  std::int64_t width, head, heads, mlp, text, channels, sound, vector, frequencies;
  int layers, refiners;
  std::int64_t output_heads;  // of FastH3 for parallel decoding; else 1
};

// Throws where heads do not fit.
MinimaxSizes read_minimax_sizes(const Checkpoint& file, const Value& config,
                                const MinimaxNames& names);

// What BlockSparseAttention tells.
struct SparseLayers {
  double share = 0;
  std::int64_t least_tokens = 0;
  std::vector<std::int64_t> dense;
  bool is_dense(int layer) const { return std::ranges::find(dense, layer) != dense.end(); }
};
// None: all are dense.
std::optional<SparseLayers> sparse_layers(const Value& config);

void add_minimax_settings(const MinimaxSizes& sizes, const MinimaxNames& names, const Value& config,
                          Blocks& graph);

}  // namespace heddle::denoisers
