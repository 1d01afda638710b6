// plugins/denoisers/wan_fun_blocks.h - the block types that Wan Fun has besides Wan's: the rays of
// a camera that are added to the latent's tokens, and a picture whose tokens are a frame before the
// video's. Source of the architecture: WanTransformer3DModel of VideoX-Fun, by the publishers of
// the models (control_adapter, ref_conv), as ComfyUI has it. Letters as in wan_blocks.h. Blocks are
// pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// camera (1|B, K, F, H, W): of each cell the rays of its pixels and frames -> tokens (1|B, L, D),
// or (1, 0, D) where there is no camera. A convolution by tokens and one residual block over the
// tokens of each frame.
struct WanCameraIn {
  static constexpr Info info{"wan.camera_in", 1, "Wan camera", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> camera{"camera", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Weight first{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight first_bias{"conv1.bias"};
  static constexpr Weight second{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight second_bias{"conv2.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(camera, weight, bias, first, first_bias, second, second_bias, out);
  static void execute(Context& ctx);
};

// reference (1|B, C, 1, H, W), a latent -> tokens (1|B, L / F, D), or (1, 0, D) where there is
// none.
struct WanReferenceIn {
  static constexpr Info info{"wan.reference_in", 1,  "Wan reference picture",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(reference, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) plus camera (1|B, L, D), behind reference (1|B, R, D) -> hidden (B, R + L, D).
// Of either there may be no tokens.
struct WanFunJoin {
  static constexpr Info info{"wan.fun_join", 1,  "Wan Fun tokens",
                             "blocks/wan",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> camera{"camera", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, camera, reference, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
