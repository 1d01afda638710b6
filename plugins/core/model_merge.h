// Two models with weights of the same meaning, and what is made of them: patches of the first by
// the second's weights (heddle::merged_with). Reads headers only. One call's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::loaders {

// What becomes of a weight: keep * (the first model's) + add * (the second's).
struct Share {
  double keep = 1, add = 0;
};
// ComfyUI's ratio: of the first model.
inline Share share_of(double ratio) { return {ratio, 1 - ratio}; }

// By the name of the second model's weight.
using ShareOf = std::function<Share(std::string_view weight)>;

// The first model, changed. Weights that only the second has are left out, and told of.
Value merged_models(const Value& first, const Value& second, const ShareOf& share);

struct BlockRatio {
  std::string prefix;
  double ratio = 1;
};
// The same by the ratio of the longest prefix that a weight's name begins with; of the first one
// where none does. A weight's name is that of the original files, where its family tells one that
// begins with a prefix, else that of its file.
Value merged_by_blocks(const Value& first, const Value& second,
                       const std::vector<BlockRatio>& ratios);

// CLIP values: encoders of the same name are merged, others stay.
Value merged_clips(const Value& first, const Value& second, const Share& share);

// Rows of a model's weights whose names end like this, times a number.
struct Factor {
  std::string ending;  // "self_attn.q_proj.weight"
  double factor = 1;
  std::optional<bool> is_of_frames = {};  // of Stable Video Diffusion's blocks over frames, or not
};
Value multiplied(const Value& model, const std::vector<Factor>& factors);

}  // namespace heddle::loaders
