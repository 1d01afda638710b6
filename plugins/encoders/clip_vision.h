// plugins/encoders/clip_vision.h - CLIP's vision towers: OpenAI's ViT-L/14, OpenCLIP's H and bigG,
// by the names of transformers (CLIPVisionModelWithProjection) or OpenCLIP.
//
// Input    picture      (B, H, W, 3)  loop-invariant  normalised, of the tower's size
// Outputs  last_hidden  (B, S, D) f32  behind the last layer: a class token, then the patches
//          penultimate  (B, S, D) f32  behind the layer before it
//          projected    (B, P) f32     the class token, normed and projected, when the file has it
//          mm_projected (B, S - 1, W) f32  of LLaVA's files, with its projector: the patches of
//                       penultimate as a language model of width W reads them
//
// Source of the architecture: Radford et al. 2021 and transformers' CLIPVisionModel: a class token
// before patches without a bias, a norm before the layers, which are those of CLIP's text encoder
// without a mask. Without a config there are 16 heads, as in all published towers, eps is 1e-5, and
// the activation is quick-GELU in models of at most 24 layers (OpenAI's L), GELU in deeper ones.
// Only operands of matrix products are in the compute type (plugins/blocks/wide.h). Stateless, any
// thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

// picture (B, H, W, 3) -> hidden (B, 1 + n, D): a class token and n patches, plus their positions,
// normed.
struct ClipVisionEmbed {
  static constexpr Info info{"clip_vision.embed", 1,  "CLIP patches",
                             "blocks/clip",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight patches{"patches.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight whole{"class"};
  static constexpr Weight positions{"positions"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(picture, eps, patches, whole, positions, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> pooled (B, D): the class token, normed.
struct ClipVisionPool {
  static constexpr Info info{"clip_vision.pool", 1,  "CLIP class token",
                             "blocks/clip",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"pooled"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, 1 + n, D) -> tokens (B, n, W) f32: its patches through two layers with GELU between
// them. Source: transformers' LlavaMultiModalProjector.
struct ClipVisionTokens {
  static constexpr Info info{"clip_vision.tokens", 1,  "CLIP patches for a language model",
                             "blocks/clip",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(hidden, in, in_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// The tower of a file for a family that reads its class token: the blocks and the input "picture".
struct ClipTower {
  Source pooled;             // (B, width), normed
  std::int64_t width, size;  // size: of the pictures' sides
};
// Throws where the file holds no such tower.
ClipTower add_clip_tower(const Checkpoint& file, const Value& config, Blocks& graph);

struct ClipVision {
  static constexpr Family family{"clip_vision", "vision_encoder", 1, "CLIP's vision tower"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
