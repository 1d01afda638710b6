// plugins/encoders/photo_maker.h - PhotoMaker (Li et al. 2023), version 1: what CLIP's tower sees
// of a person is put into the row of a text that names them. By the names of the published file
// ("vision_model.", "visual_projection.", "visual_projection_2.", "fuse_module.", there behind
// "id_encoder.").
//
// Inputs   picture  (1, H, W, 3)  loop-invariant  normalised, of the tower's size
//          row      (1, C)        loop-invariant  the states of the text at one token
// Output   fused    (1, C) f32    what stands there instead
//
// Settings: family, size (int: of the tower's pictures), width (int, C). Version 2 reads what
// InsightFace makes of a face, too, which nothing here does: it is refused. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

inline constexpr const char* kPhotoMakerRole = "photo_maker";

// pooled (1, D), row (1, C) -> fused (1, C): both projections of the tower's class token beside the
// row, an MLP whose result is added to the row, another one, and a norm.
struct PhotoMakerFuse {
  static constexpr Info info{"photo_maker.fuse",   1,  "PhotoMaker fusion",
                             "blocks/photo_maker", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> pooled{"pooled"};
  static constexpr Input<Tensor> row{"row"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight up1{"mlp1.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up1_bias{"mlp1.up.bias"};
  static constexpr Weight down1{"mlp1.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down1_bias{"mlp1.down.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up2{"mlp2.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up2_bias{"mlp2.up.bias"};
  static constexpr Weight down2{"mlp2.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down2_bias{"mlp2.down.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"fused"};
  static constexpr auto ports =
      heddle::ports(pooled, row, eps, proj, norm1, norm1_bias, up1, up1_bias, down1, down1_bias,
                    norm2, norm2_bias, up2, up2_bias, down2, down2_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

struct PhotoMaker {
  static constexpr Family family{"photomaker", kPhotoMakerRole, 1, "PhotoMaker for SDXL"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
