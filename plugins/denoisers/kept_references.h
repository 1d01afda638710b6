// plugins/denoisers/kept_references.h - attention to reference pictures that are no longer there:
// keys and values of their tokens, which each block makes at the first call of a run and is given
// at later ones. The blocks are FLUX's (flux_blocks.h) with one input and one output more; they
// keep all heads and tokens on one device. Any thread.
#pragma once

#include "flux_blocks.h"

namespace heddle::denoisers {

// Keys and values (B, R, 2 D), keys first, rotated. As output: of the last R tokens, R of the
// input "references", or none where there is no such input.
namespace kept_ports {
constexpr Input<Tensor> input() { return Input<Tensor>("kept", HEDDLE_PORT_OPTIONAL); }
constexpr Output<Tensor> output() { return Output<Tensor>("kept"); }
}  // namespace kept_ports

struct FluxKeptDouble {
  using B = FluxDouble;
  static constexpr Info info{
      "flux.double.kept", 1,  "FLUX double-stream block that keeps reference pictures",
      "blocks/flux",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> kept = kept_ports::input();
  static constexpr Output<Tensor> kept_out = kept_ports::output();
  static constexpr auto ports = heddle::ports(
      B::img, B::txt, B::img_mod, B::txt_mod, B::cos, B::sin, B::nag, B::references,
      B::reference_timestep, B::first, kept, B::heads, B::eps, B::gated, B::img_qkv,
      B::img_qkv_bias, B::img_q_norm, B::img_k_norm, B::img_proj, B::img_proj_bias, B::img_up,
      B::img_up_bias, B::img_down, B::img_down_bias, B::txt_qkv, B::txt_qkv_bias, B::txt_q_norm,
      B::txt_k_norm, B::txt_proj, B::txt_proj_bias, B::txt_up, B::txt_up_bias, B::txt_down,
      B::txt_down_bias, B::img_out, B::txt_out, kept_out);
  static void execute(Context& ctx);
};

struct FluxKeptSingle {
  using B = FluxSingle;
  static constexpr Info info{
      "flux.single.kept", 1,  "FLUX single-stream block that keeps reference pictures",
      "blocks/flux",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> kept = kept_ports::input();
  static constexpr Output<Tensor> kept_out = kept_ports::output();
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::cos, B::sin, B::x, B::references, B::reference_timestep, B::first,
      B::nag, kept, B::heads, B::eps, B::gated, B::patch, B::qkv, B::qkv_bias, B::up, B::up_bias,
      B::q_norm, B::k_norm, B::down, B::down_bias, B::out, kept_out);
  static void execute(Context& ctx);
};

// What a block has to do with them; nothing where it has no such ports.
struct KeptReferences {
  const Input<Tensor>* input = nullptr;
  const Output<Tensor>* output = nullptr;

  // Tokens that it is given.
  std::int64_t given(Context& ctx) const;
  // qkv (B, L + R, 3 D): puts those given behind the L own tokens, and hands out the last `shown`
  // of these. Throws where devices divide the block.
  void pass(Context& ctx, const Tensor& qkv, std::int64_t length, std::int64_t shown) const;
};

}  // namespace heddle::denoisers
