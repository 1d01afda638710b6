// plugins/encoders/gemma4_sizes.h - what a file of Gemma 4 is made of, read off its tensors and its
// config (gemma4_model.h). Functions of names and shapes only; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language_names.h"

namespace heddle::encoders {

struct Gemma4LayerSizes {
  bool is_near = false;  // sees through a window
  int source = -1;       // the layer whose keys and values it shares; -1: it has its own
  bool own_values = true;
  std::int64_t head = 0, heads = 0, kv_heads = 0, inner = 0;
};

struct Gemma4Sizes {
  std::int64_t vocabulary = 0, width = 0;
  std::int64_t told = 0;  // numbers that a layer is told of a token; 0: none
  std::int64_t told_vocabulary = 0;
  std::vector<Gemma4LayerSizes> layers;
  int own_layers = 0;  // those that have keys and values of their own: the first
  std::int64_t window = 0;
  bool sees_groups = false;  // tokens of a picture see each other
  double eps = 0, logit_cap = 0, near_theta = 0, far_theta = 0, far_part = 0;  // that turns
};

// Throws HEDDLE_INVALID_ARGUMENT where sizes do not fit, HEDDLE_UNSUPPORTED for experts.
Gemma4Sizes read_gemma4_sizes(const Checkpoint& file, const LanguageNames& names,
                              const Value& config);

}  // namespace heddle::encoders
