// plugins/denoisers/flux_blocks.h - the block types of FLUX.1, which FLUX.2 and Qwen-Image use, too
// (dual_stream.h), written down as programs over the op catalogue. Source of the architecture:
// Black Forest Labs' published FLUX.1 model (double- and single-stream transformer blocks). Slots
// of biases stay empty where a family has none. Shapes: B batch, T text tokens, S image tokens, L =
// T + S (text first), D hidden width, H heads of size d, N steps. What depends on the timestep
// alone (Vector, the modulations) is in blocks of its own, so that it runs once for all steps; its
// outputs are (N, 1|B, width) and reach the other blocks as one step's slice (1, 1|B, width).
// The streams that blocks add to (img, txt, hidden), Vector and the modulations are f32 in every
// compute type: in bf16 the streams' rounding alone made two thirds of the squared error of the
// model's output, the modulations' 8 % (tiny-scenes, steps 4, 14 and 24 of 28). So is all that the
// first and the last projection read and write: they are thin, and nothing makes up for them.
// Given "nag", blocks compute pairs of items (attention_guidance.h): B is then twice what it is of
// the latent x, context is (1|B/2, 2 T, D_text), y (B/2, 2 P), guidance (B/2, 2).
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

#include "patches.h"

namespace heddle::denoisers {

// timestep (N) in [0, 1], y (1|B, P) pooled text, guidance (1|B) -> vector (N, 1|B, D), already
// through SiLU because every reader would begin with it.
struct FluxVector {
  static constexpr Info info{"flux.vector", 1,  "FLUX timestep and pooled text",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> y{"y"};
  static constexpr Input<Tensor> guidance{"guidance", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> unguided{"unguided", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                          "given: no guidance is told, not even the default"};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<double> default_guidance{"default_guidance", Widget{.number = 3.5}};
  static constexpr Input<double> time_scale{"time_scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Weight text_in{"text.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_in_bias{"text.in.bias"};
  static constexpr Weight text_out{"text.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_out_bias{"text.out.bias"};
  static constexpr Weight guidance_in{"guidance.in.weight", HEDDLE_USE_LINEAR,
                                      HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_in_bias{"guidance.in.bias", HEDDLE_USE_VECTOR,
                                           HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_out{"guidance.out.weight", HEDDLE_USE_LINEAR,
                                       HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_out_bias{"guidance.out.bias", HEDDLE_USE_VECTOR,
                                            HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(
      timestep, y, guidance, unguided, nag, default_guidance, time_scale, max_period, time_in,
      time_in_bias, time_out, time_out_bias, text_in, text_in_bias, text_out, text_out_bias,
      guidance_in, guidance_in_bias, guidance_out, guidance_out_bias, out);
  static void execute(Context& ctx);
};

// The rotary table of the joint sequence: text tokens at position (0, 0, 0), or one after another
// along the first axis (`sequential`), image tokens at (0, row, column), or, with positions (2, 3)
// f32, at these times its first row, plus its second; then those of reference pictures, at
// reference_positions (R, 3). cos, sin: (L, d/2) f32. Of the latent and the text it reads shapes
// only.
struct FluxRope {
  static constexpr Info info{"flux.rope",   1,  "FLUX rotary table",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = kPatch}};
  static constexpr Input<bool> sequential{"sequential", Widget{}, "texts one after another"};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 16}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 56}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 56}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Input<Tensor> positions{"positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference_positions{"reference_positions", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, context, nag, patch, sequential, axis_0, axis_1, axis_2, theta, positions,
                    reference_positions, cos, sin);
  static void execute(Context& ctx);
};

// context (1|B, T, D_text) -> (B, T, D). Fewer tokens than `least_tokens` are completed by zeros
// before them.
struct FluxTextIn {
  static constexpr Info info{"flux.text_in", 1,  "FLUX text projection",
                             "blocks/flux",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent, for B"};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> least{"least_tokens", Widget{.number = 0}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(context, x, nag, least, weight, bias, out);
  static void execute(Context& ctx);
};

// x (B, C, H, W) [and more channels (1|B, C', H, W)] -> (B, S, D): 2x2 pixels of all channels are a
// token. An odd side is completed with the picture's first row or column, as ComfyUI does. Of x (B,
// C, F, H, W) the tokens of one picture come behind those of another. The tokens of reference
// pictures (1|B, R, 4 C), as given, go behind: (B, S + R, D).
struct FluxImageIn {
  static constexpr Info info{"flux.image_in", 1,  "FLUX image projection",
                             "blocks/flux",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> concat{"concat", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 2}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(x, concat, references, nag, patch, weight, bias, out);
  static void execute(Context& ctx);
};

// img (B, S, D) -> the same, with `strength` times what two matrices make of the tokens of x (B, C,
// H, W) and concat (1|B, C', H, W) side by side added (widening.h).
struct FluxWiden {
  static constexpr Info info{"flux.widen",  1,  "FLUX image projection's LoRA",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> concat{"concat"};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 2}};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(img, x, concat, nag, patch, strength, down, up, out);
  static void execute(Context& ctx);
};

// vector (N, 1|B, D) -> (N, 1|B, 6 D) for each stream: shift, scale, gate of the attention, then of
// the MLP.
struct FluxDoubleModulation {
  static constexpr Info info{
      "flux.double.modulation", 1, "FLUX double-stream modulation", "blocks/flux", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight img_weight{"img.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_bias{"img.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_weight{"txt.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight txt_bias{"txt.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> img{"img"};
  static constexpr Output<Tensor> txt{"txt"};
  static constexpr auto ports =
      heddle::ports(vector, img_weight, img_bias, txt_weight, txt_bias, img, txt);
  static void execute(Context& ctx);
};

// vector (N, 1|B, D) -> (N, 1|B, k D): k = 3 (shift, scale, gate) in single blocks, 2 (shift,
// scale) in the last layer.
struct FluxModulation {
  static constexpr Info info{"flux.modulation", 1,  "FLUX modulation",
                             "blocks/flux",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(vector, weight, bias, out);
  static void execute(Context& ctx);
};

// Two streams, one attention: img (B, S, D), txt (B, T, D) -> the same. With a reference_timestep
// img_mod (1, 2, 6 D) has that of the latent's tokens and that of the last R, of reference
// pictures, or where `first` is given of those of the first frame of that latent; of txt_mod the
// first counts. `control`, `control_first`: residuals of ControlNets
// (control.h).
struct FluxDouble {
  static constexpr Info info{"flux.double", 2,  "FLUX double-stream block",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> img{"img", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> txt{"txt", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> img_mod{"img_mod"};
  static constexpr Input<Tensor> txt_mod{"txt_mod"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                            "those of reference pictures, for R"};
  static constexpr Input<Tensor> reference_timestep{"reference_timestep",
                                                    HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> first{"first", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                       "a latent whose first frame has the reference_timestep"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 24}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<bool> gated{"gated", Widget{}, "the MLP is SiLU(a) * b of (a, b)"};
  static constexpr Input<Tensor> control{"control", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> control_first{"control_first", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> control_index{"control_index", Widget{}};
  static constexpr Input<std::int64_t> control_depth{"control_depth", Widget{.number = 1}};
  static constexpr Weight img_qkv{"img.qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_qkv_bias{"img.qkv.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight img_q_norm{"img.q_norm"};
  static constexpr Weight img_k_norm{"img.k_norm"};
  static constexpr Weight img_proj{"img.proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_proj_bias{"img.proj.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight img_up{"img.mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_up_bias{"img.mlp.up.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight img_down{"img.mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight img_down_bias{"img.mlp.down.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_qkv{"txt.qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight txt_qkv_bias{"txt.qkv.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_q_norm{"txt.q_norm"};
  static constexpr Weight txt_k_norm{"txt.k_norm"};
  static constexpr Weight txt_proj{"txt.proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight txt_proj_bias{"txt.proj.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_up{"txt.mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight txt_up_bias{"txt.mlp.up.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_down{"txt.mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight txt_down_bias{"txt.mlp.down.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> img_out{"img", HEDDLE_PORT_SEQUENCE};
  static constexpr Output<Tensor> txt_out{"txt", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(
      img, txt, img_mod, txt_mod, cos, sin, nag, references, reference_timestep, first, heads, eps,
      gated, control, control_first, control_index, control_depth, img_qkv, img_qkv_bias,
      img_q_norm, img_k_norm, img_proj, img_proj_bias, img_up, img_up_bias, img_down, img_down_bias,
      txt_qkv, txt_qkv_bias, txt_q_norm, txt_k_norm, txt_proj, txt_proj_bias, txt_up, txt_up_bias,
      txt_down, txt_down_bias, img_out, txt_out);
  static void execute(Context& ctx);
};

// txt (B, T, D), img (B, S, D) -> (B, L, D), text first.
struct FluxJoin {
  static constexpr Info info{"flux.join",   1,  "FLUX join of the streams",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(txt, img, out);
  static void execute(Context& ctx);
};

// One stream, attention and MLP side by side: hidden (B, L, D) -> the same. Divided as FluxDouble
// is. With a reference_timestep mod is (1, 2, 3 D), as there.
struct FluxSingle {
  static constexpr Info info{"flux.single", 2,  "FLUX single-stream block",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent, for S"};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                            "those of reference pictures, for R"};
  static constexpr Input<Tensor> reference_timestep{"reference_timestep",
                                                    HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> first{"first", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                       "a latent whose first frame has the reference_timestep"};
  static constexpr Input<Tensor> nag{"nag", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 24}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<bool> gated{"gated", Widget{}, "the MLP is SiLU(a) * b of (a, b)"};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 2}};
  static constexpr Input<Tensor> control{"control", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> control_index{"control_index", Widget{}};
  static constexpr Input<std::int64_t> control_depth{"control_depth", Widget{.number = 1}};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight q_norm{"q_norm"};
  static constexpr Weight k_norm{"k_norm"};
  static constexpr Weight down{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"out.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, mod, cos, sin, x, references, reference_timestep, first, nag, heads,
                    eps, gated, patch, control, control_index, control_depth, qkv, qkv_bias, up,
                    up_bias, q_norm, k_norm, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) -> out (B, C, H, W) in the latent's element type: the last projection, unpacked;
// of a latent (B, C, F, H, W) in that shape. Of pairs it is (B/2, 2 C, H, W). What lies behind the
// picture's tokens is left.
struct FluxFinal {
  static constexpr Info info{"flux.final",  1,  "FLUX last layer",
                             "blocks/flux", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                            "those of reference pictures, for R"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 2}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"out"};
  static constexpr Input<Tensor> reference_timestep{"reference_timestep",
                                                    HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE,
                                                    "with it the first of mod (1, 2, 2 D) counts"};
  static constexpr auto ports =
      heddle::ports(hidden, mod, x, references, reference_timestep, eps, patch, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
