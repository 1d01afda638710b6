// plugins/denoisers/flux_style.h - the style projector of USO, a model patch of FLUX.1
// (model_patches.h): tokens of what SigLIP's tower sees of a picture, in three of its layers, go
// before those of the text. Source of the architecture: SigLIPMultiFeatProjModel of the publisher's
// USO (ByteDance), as ComfyUI places it; there the tokens lie at the origin, as the text's do.
//
// "patch.<n>.hint" is (3, S, Dv): the states behind the tower's layers 20, 11 and 2 from its end.
// The tokens of a later patch go before those of an earlier one.
//
// Blocks of "patch.<n>": hint, join. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "model_patches.h"

namespace heddle::denoisers {

// hint (3, S, Dv) -> (1, 3 T, D): T tokens of each layer, those of the last layer first.
struct FluxStyleTokens {
  static constexpr Info info{"flux.style_tokens", 1,  "USO style tokens",
                             "blocks/flux",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight early_mix{"early.mix.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight early_mix_bias{"early.mix.bias"};
  static constexpr Weight early_norm{"early.norm.weight"};
  static constexpr Weight early_norm_bias{"early.norm.bias"};
  static constexpr Weight early_out{"early.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight early_out_bias{"early.out.bias"};
  static constexpr Weight middle_mix{"middle.mix.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_mix_bias{"middle.mix.bias"};
  static constexpr Weight middle_norm{"middle.norm.weight"};
  static constexpr Weight middle_norm_bias{"middle.norm.bias"};
  static constexpr Weight middle_out{"middle.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_out_bias{"middle.out.bias"};
  static constexpr Weight late_mix{"late.mix.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight late_mix_bias{"late.mix.bias"};
  static constexpr Weight late_norm{"late.norm.weight"};
  static constexpr Weight late_norm_bias{"late.norm.bias"};
  static constexpr Weight late_out{"late.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight late_out_bias{"late.out.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(
      hint, eps, early_mix, early_mix_bias, early_norm, early_norm_bias, early_out, early_out_bias,
      middle_mix, middle_mix_bias, middle_norm, middle_norm_bias, middle_out, middle_out_bias,
      late_mix, late_mix_bias, late_norm, late_norm_bias, late_out, late_out_bias, out);
  static void execute(Context& ctx);
};

// style (1, T', D), txt (B, T, D) -> (B, T' + T, D).
struct FluxStyleJoin {
  static constexpr Info info{"flux.style_join", 1,  "USO style tokens before a text",
                             "blocks/flux",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> style{"style"};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(style, txt, out);
  static void execute(Context& ctx);
};

// The text's tokens with those of a patch before them. `file`: both joined.
Source add_style(const Checkpoint& file, const ModelPatch& patch, std::int64_t hidden,
                 const Source& txt, Blocks& graph);

// A patch's file by itself: the tokens, and settings for who applies it.
struct UsoProjector {
  static constexpr Family family{"flux-uso", kPatchRole, 1,
                                 "USO: a style from a picture for FLUX.1, a model patch"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
