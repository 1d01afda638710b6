// plugins/denoisers/wan_scail_blocks.h - the block types that SCAIL 2 has besides Wan's: reference
// pictures and a video of poses as tokens beside those of the video, and colours of persons, which
// are added to the tokens where these persons are. Source of the architecture: the publishers'
// model, as ComfyUI runs it, which reads the references before the video; here they are behind it,
// as an attention knows no order. R tokens of references, P of poses, K channels of masks; other
// letters as in wan_blocks.h. Blocks are pure and have no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// latent (1|B, C, F', H, W) -> tokens (1|B, N, D) f32; without it 0 tokens. The channels that the
// filter reads behind these C are ones: what is shown is known.
struct WanScailIn {
  static constexpr Info info{"wan.scail_in", 1,  "Wan tokens of what is shown",
                             "blocks/wan",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> latent{"latent", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(latent, weight, bias, out);
  static void execute(Context& ctx);
};

// masks (1|B, F', K, H, W) -> tokens (1|B, N, D) f32; without them 0 tokens.
struct WanScailMasks {
  static constexpr Info info{"wan.scail_masks", 1,  "Wan tokens of coloured masks",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> masks{"masks", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(masks, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), then tokens of references, shown (1|B, R, D), and of poses, posed (1|B, P, D),
// plus those of their masks: shown_masks (1|B, R + L or 0, D), of the references, then of the
// video, and posed_masks (1|B, P or 0, D) -> hidden (B, L + R + P, D) f32. Masks of poses that are
// not there count nothing. Throws where masks have other tokens than these.
struct WanScailJoin {
  static constexpr Info info{"wan.scail_join", 1,  "Wan tokens of a video, pictures and poses",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> shown{"shown"};
  static constexpr Input<Tensor> posed{"posed"};
  static constexpr Input<Tensor> shown_masks{"shown_masks"};
  static constexpr Input<Tensor> posed_masks{"posed_masks"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, shown, posed, shown_masks, posed_masks, out);
  static void execute(Context& ctx);
};

// The rotary table of the tokens of WanScailJoin at (frame, row, column). The references' frames
// are before the video's, whose frames the poses have, 120 columns to the right, each of their
// tokens in the middle of those of the video that it stands for. With `apart`, of which it counts
// that it is given, the video and the poses begin at the frame of the last reference, R frames from
// 0 on that are 120 rows below. cos, sin: (L + R + P, d/2) f32. reference, pose: what those tokens
// are made of.
struct WanScailRope {
  static constexpr Info info{"wan.scail_rope", 1,  "Wan rotary table with pictures and poses",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, F, H, W)"};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> pose{"pose", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> apart{"apart", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 44}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 42}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 42}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, reference, pose, apart, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
