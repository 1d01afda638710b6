// plugins/denoisers/qwen_patch.h - ControlNets of DiffSynth for Qwen-Image (canny, depth,
// inpainting), model patches (model_patches.h): behind each block, what two linear layers make of
// the picture's tokens and those of a hint is added to the former. Source of the architecture:
// QwenImageBlockWiseControlNet of DiffSynth-Studio, by the publisher of the patches.
//
// Hints (1|B, C, H, W): the latent of a picture, for inpainting with a mask behind it that is 1
// where the picture stays.
//
// Blocks of "patch.<n>": hint, double.<i>.add. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "model_patches.h"

namespace heddle::denoisers {

// img (B, S + R, D), hint (1|B, S, D) -> img with `strength` times what is made of both added to
// the latent's tokens, which are the first S.
struct QwenPatchAdd {
  static constexpr Info info{"qwen.patch_add", 1,  "Qwen-Image patch residual",
                             "blocks/qwen",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> img{"img", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight img_norm{"img.norm.weight"};
  static constexpr Weight hint_norm{"hint.norm.weight"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight made{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight made_bias{"out.bias"};
  static constexpr Output<Tensor> out{"img", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(img, hint, strength, eps, img_norm, hint_norm, in,
                                              in_bias, made, made_bias, out);
  static void execute(Context& ctx);
};

// One patch in the graph of its model. One call's thread.
class QwenPatch {
 public:
  // All arguments outlive this object. `file`: both joined. Adds "patch.<n>.hint".
  QwenPatch(const Checkpoint& file, const ModelPatch& patch, std::int64_t hidden, Blocks& graph);
  // Behind block `index`: the picture's stream.
  Source after_block(int index, const Source& img) const;
  const ModelPatch& told() const { return patch_; }

 private:
  const Checkpoint& file_;
  const ModelPatch& patch_;
  const std::int64_t hidden_;
  Blocks& graph_;
  Source hint_;
};

// A patch's file by itself: what of it turns a hint into tokens, and settings for who applies it.
struct QwenDiffsynth {
  static constexpr Family family{"qwen-image-diffsynth", kPatchRole, 1,
                                 "ControlNet of DiffSynth for Qwen-Image, a model patch"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
