// plugins/denoisers/sd3_blocks.h - the block types that Stable Diffusion 3 and 3.5 have besides
// those of FLUX (flux_blocks.h, where the shapes are explained, too). Source of the architecture:
// Esser et al., 2024, arXiv 2403.03206, and the published models of 3.5. As there the streams and
// the modulations are f32 in every compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// x (B, C, H, W) -> (B, S, D): 2x2 pixels are a token, each with what the middle of a square table
// of positions (1, side^2, D) has for its place. An odd side is completed as FluxImageIn does.
struct Sd3ImageIn {
  static constexpr Info info{"sd3.image_in", 1,  "SD3 image projection",
                             "blocks/sd3",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Weight positions{"positions"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(x, weight, bias, positions, out);
  static void execute(Context& ctx);
};

// Two streams, one attention: img (B, S, D), txt (B, T, D) -> the same. Where the slots of a second
// attention are filled the picture's tokens attend to each other besides, and img_mod has nine
// parts: shift, scale, gate of the attention, of the MLP, of the second attention. In the last
// block, whose txt_mod has shift and scale alone, the text is attended to and stays as it is. Slots
// of norms are empty in SD3, those behind the text's attention in the last block. `control`:
// residuals of a ControlNet (control.h). A group of devices may have some of the tokens each.
struct Sd3Joint {
  static constexpr Info info{"sd3.joint",  1,  "SD3 joint block",
                             "blocks/sd3", "", HEDDLE_NODE_BLOCK};
  static constexpr std::uint32_t kOptional = HEDDLE_PORT_OPTIONAL;

  static constexpr Input<Tensor> img{"img", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> txt{"txt", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> img_mod{"img_mod"};
  static constexpr Input<Tensor> txt_mod{"txt_mod"};
  static constexpr Input<Tensor> control{"control", kOptional};
  static constexpr Input<std::int64_t> control_index{"control_index", Widget{}};
  static constexpr Input<std::int64_t> control_depth{"control_depth", Widget{.number = 1}};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 24}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight img_qkv{"img.qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_qkv_bias{"img.qkv.bias", HEDDLE_USE_BIAS};
  static constexpr Weight img_q_norm{"img.q_norm", HEDDLE_USE_VECTOR, kOptional};
  static constexpr Weight img_k_norm{"img.k_norm", HEDDLE_USE_VECTOR, kOptional};
  static constexpr Weight img_proj{"img.proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_proj_bias{"img.proj.bias", HEDDLE_USE_BIAS};
  static constexpr Weight img_up{"img.mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_up_bias{"img.mlp.up.bias", HEDDLE_USE_BIAS};
  static constexpr Weight img_down{"img.mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_down_bias{"img.mlp.down.bias", HEDDLE_USE_BIAS};
  static constexpr Weight own_qkv{"img2.qkv.weight", HEDDLE_USE_LINEAR, kOptional};
  static constexpr Weight own_qkv_bias{"img2.qkv.bias", HEDDLE_USE_BIAS, kOptional};
  static constexpr Weight own_q_norm{"img2.q_norm", HEDDLE_USE_VECTOR, kOptional};
  static constexpr Weight own_k_norm{"img2.k_norm", HEDDLE_USE_VECTOR, kOptional};
  static constexpr Weight own_proj{"img2.proj.weight", HEDDLE_USE_LINEAR, kOptional};
  static constexpr Weight own_proj_bias{"img2.proj.bias", HEDDLE_USE_BIAS, kOptional};
  static constexpr Weight txt_qkv{"txt.qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight txt_qkv_bias{"txt.qkv.bias", HEDDLE_USE_BIAS};
  static constexpr Weight txt_q_norm{"txt.q_norm", HEDDLE_USE_VECTOR, kOptional};
  static constexpr Weight txt_k_norm{"txt.k_norm", HEDDLE_USE_VECTOR, kOptional};
  static constexpr Weight txt_proj{"txt.proj.weight", HEDDLE_USE_LINEAR, kOptional};
  static constexpr Weight txt_proj_bias{"txt.proj.bias", HEDDLE_USE_BIAS, kOptional};
  static constexpr Weight txt_up{"txt.mlp.up.weight", HEDDLE_USE_LINEAR, kOptional};
  static constexpr Weight txt_up_bias{"txt.mlp.up.bias", HEDDLE_USE_BIAS, kOptional};
  static constexpr Weight txt_down{"txt.mlp.down.weight", HEDDLE_USE_LINEAR, kOptional};
  static constexpr Weight txt_down_bias{"txt.mlp.down.bias", HEDDLE_USE_BIAS, kOptional};
  static constexpr Output<Tensor> img_out{"img", HEDDLE_PORT_SEQUENCE};
  static constexpr Output<Tensor> txt_out{"txt", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(
      img, txt, img_mod, txt_mod, control, control_index, control_depth, heads, eps, img_qkv,
      img_qkv_bias, img_q_norm, img_k_norm, img_proj, img_proj_bias, img_up, img_up_bias, img_down,
      img_down_bias, own_qkv, own_qkv_bias, own_q_norm, own_k_norm, own_proj, own_proj_bias,
      txt_qkv, txt_qkv_bias, txt_q_norm, txt_k_norm, txt_proj, txt_proj_bias, txt_up, txt_up_bias,
      txt_down, txt_down_bias, img_out, txt_out);
  static void execute(Context& ctx);
};

// The picture's part of a joint block, without a text: the ControlNets of Stable Diffusion 3.5
// large. Divided as Sd3Joint is.
struct Sd3Single {
  using B = Sd3Joint;
  static constexpr Info info{"sd3.single", 1,  "SD3 block without a text",
                             "blocks/sd3", "", HEDDLE_NODE_BLOCK};
  static constexpr auto ports =
      heddle::ports(B::img, B::img_mod, B::heads, B::eps, B::img_qkv, B::img_qkv_bias,
                    B::img_q_norm, B::img_k_norm, B::img_proj, B::img_proj_bias, B::img_up,
                    B::img_up_bias, B::img_down, B::img_down_bias, B::img_out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
