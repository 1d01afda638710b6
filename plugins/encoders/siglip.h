// plugins/encoders/siglip.h - SigLIP's vision tower, and FLUX.1 Redux, which makes tokens of a text
// of what the tower sees. By transformers' names (SiglipVisionModel), and by those of the published
// redux_up and redux_down.
//
// SiglipVision  picture  (B, H, W, 3)  loop-invariant  normalised, of the tower's size
//               last_hidden (B, S, D) f32, behind the last norm; in towers of 20 layers and more
//               also hidden_20, hidden_11, hidden_2: behind the layers so far from the end
// Redux         hidden   (B, S, D)     loop-invariant
//               tokens   (B, S, D') f32
//
// Source of the architecture: transformers' SiglipVisionModel (patches without a class token,
// pre-norm layers as CLIP's, without a mask) and diffusers' ReduxImageEncoder. Sizes are read off
// the tensors; the config may give "num_attention_heads", "layer_norm_eps", "hidden_act" and
// "image_size". The pooling head is not read. Only operands of matrix products are in the compute
// type (plugins/blocks/wide.h). Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>
#include <vector>

namespace heddle::encoders {

// picture (B, H, W, 3) -> hidden (B, S, D): patches row after row, plus their positions.
struct SiglipEmbed {
  static constexpr Info info{"siglip.embed", 1,  "SigLIP patches",
                             "blocks/clip",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Weight patches{"patches.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight patches_bias{"patches.bias"};
  static constexpr Weight positions{"positions"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(picture, patches, patches_bias, positions, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same.
struct SiglipFinish {
  static constexpr Info info{"siglip.finish", 1,  "SigLIP final norm",
                             "blocks/clip",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> (B, S, D').
struct ReduxTokens {
  static constexpr Info info{"redux.tokens", 1,  "FLUX.1 Redux",
                             "blocks/clip",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(hidden, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// The tower of a file, as blocks of a graph: states (B, S, D) behind each layer, and behind the
// norm after the last.
struct SiglipTower {
  std::vector<heddle::Source> layers;
  heddle::Source seen;
  std::int64_t width = 0, positions = 0;  // D, S
  std::int64_t patch = 0;                 // pixels of a side
};
// What its tensors' names begin with, such as "vision_model."; none where a file has no such tower.
std::optional<std::string> siglip_prefix(const Checkpoint& file);
// `picture` (B, H, W, 3). Throws where a tensor is missing or has another shape.
SiglipTower add_siglip(const Checkpoint& file, const std::string& prefix, const Value& config,
                       const heddle::Source& picture, Blocks& graph);

struct SiglipVision {
  static constexpr Family family{"siglip_vision", "vision_encoder", 1, "SigLIP's vision tower"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Redux {
  static constexpr Family family{"redux", "style_model", 1,
                                 "FLUX.1 Redux: tokens of a text from a picture"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
