// plugins/encoders/ip_adapter.h - how an IP-Adapter's file makes tokens of a picture out of what a
// vision tower of CLIP saw: by the names of the published files ("image_proj.", beside
// "ip_adapter.", which plugins/denoisers/unet_adapters.h reads).
//
// Input    seen    (B, D) a tower's projection, or (B, S, D) its last layer but one  constant
// Output   tokens  (B, T, C) f32
//
// Three kinds, known by their tensors: plain, and light (a matrix and a norm: 4 tokens); plus, also
// of faces (a resampler: 16 learnt tokens that attend to what was seen); full (an MLP: as many
// tokens as are seen). Source of the architectures: Ye et al. 2023, and diffusers'
// ImageProjection, IPAdapterPlusImageProjection and IPAdapterFullImageProjection. Those of FaceID
// read what InsightFace makes of a face, which nothing here does: they are refused.
//
// Settings: adapts (text, "unet"), context (int, C), blocks (int: of the UNet), reads_layers (bool:
// the last layer but one), seen_width (int, D), tokens (int: T, 0: as many as are seen). Only
// operands of matrix products are in the compute type. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

// seen (B, D) -> tokens (B, T, C).
struct IpAdapterTokens {
  static constexpr Info info{"ip_adapter.tokens", 1,  "IP-Adapter projection",
                             "blocks/ip_adapter", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> seen{"seen"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(seen, eps, proj, proj_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// seen (B, S, D) -> tokens (B, S, C).
struct IpAdapterMlp {
  static constexpr Info info{"ip_adapter.mlp",    1,  "IP-Adapter MLP",
                             "blocks/ip_adapter", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> seen{"seen"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(seen, eps, up, up_bias, down, down_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// seen (B, S, D) -> states (B, S, M), latents (B, T, M): those of the file for each item.
struct IpAdapterEnter {
  static constexpr Info info{"ip_adapter.enter",  1,  "IP-Adapter resampler input",
                             "blocks/ip_adapter", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> seen{"seen"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight learnt{"latents"};  // (1, T, M)
  static constexpr Output<Tensor> states{"states"};
  static constexpr Output<Tensor> latents{"latents"};
  static constexpr auto ports = heddle::ports(seen, proj, proj_bias, learnt, states, latents);
  static void execute(Context& ctx);
};

// states (B, S, M), latents (B, T, M) -> latents, which have attended to both and passed an MLP.
struct IpAdapterLayer {
  static constexpr Info info{"ip_adapter.layer",  1,  "IP-Adapter resampler layer",
                             "blocks/ip_adapter", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> states{"states"};
  static constexpr Input<Tensor> latents{"latents"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 12}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight kv{"kv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight norm3{"norm3.weight"};
  static constexpr Weight norm3_bias{"norm3.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"latents"};
  static constexpr auto ports =
      heddle::ports(states, latents, heads, eps, norm1, norm1_bias, norm2, norm2_bias, q, kv, proj,
                    norm3, norm3_bias, up, down, out);
  static void execute(Context& ctx);
};

// latents (B, T, M) -> tokens (B, T, C).
struct IpAdapterFinish {
  static constexpr Info info{"ip_adapter.finish", 1,  "IP-Adapter resampler output",
                             "blocks/ip_adapter", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> latents{"latents"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(latents, eps, proj, proj_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

struct IpAdapter {
  static constexpr Family family{"ip-adapter", "ip_adapter", 1,
                                 "IP-Adapters of Stable Diffusion 1.5 and SDXL"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
