// plugins/denoisers/hunyuan_blocks.h - the block types of HunyuanVideo 1.0 and 1.5 that other
// families do not have, written down as programs over the op catalogue. Blocks of two streams and
// of one, modulations and the last layer are FLUX.1's (flux_blocks.h), the first layer Wan's.
// Source of the architecture: the published models, as diffusers has them. Shapes: B batch, T
// tokens of the language model's text, G of what is written (byT5), V of a picture (SigLIP), D
// hidden width, N steps. Padding is left out of texts: the models mask it, so that nothing reads
// it. What the first and the last projection read and write is f32, as are the streams. Blocks are
// pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

#include "patches.h"

namespace heddle::denoisers {

// timestep (N) in [0, 1000], and of 1.0 y (1|B, P), CLIP's pooled state, and guidance (1|B) ->
// vector (N, 1|B, D) f32, already through SiLU because every reader would begin with it. With a
// first_timestep (1) it is (N, 2, D): of the timestep, and of that; y has one row then.
struct HunyuanVector {
  static constexpr Info info{"hunyuan.vector", 1,  "HunyuanVideo timestep and pooled text",
                             "blocks/hunyuan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> target{"target_timestep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> first_timestep{"first_timestep", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> y{"y", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> guidance{"guidance", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> default_guidance{"default_guidance", Widget{.number = 6}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Weight target_in{"target.in.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight target_in_bias{"target.in.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight target_out{"target.out.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight target_out_bias{"target.out.bias", HEDDLE_USE_VECTOR,
                                          HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_in{"text.in.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_in_bias{"text.in.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_out{"text.out.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_out_bias{"text.out.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_in{"guidance.in.weight", HEDDLE_USE_LINEAR,
                                      HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_in_bias{"guidance.in.bias", HEDDLE_USE_VECTOR,
                                           HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_out{"guidance.out.weight", HEDDLE_USE_LINEAR,
                                       HEDDLE_PORT_OPTIONAL};
  static constexpr Weight guidance_out_bias{"guidance.out.bias", HEDDLE_USE_VECTOR,
                                            HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(timestep, target, first_timestep, y, guidance, default_guidance, target_in,
                    target_in_bias, target_out, target_out_bias, time_in, time_in_bias, time_out,
                    time_out_bias, text_in, text_in_bias, text_out, text_out_bias, guidance_in,
                    guidance_in_bias, guidance_out, guidance_out_bias, out);
  static void execute(Context& ctx);
};

// What the token refiner is modulated by: timestep (N), context (1|B, T, W), of which it reads the
// mean over the tokens -> vector (N, 1|B, D) f32, through SiLU.
struct HunyuanTextVector {
  static constexpr Info info{"hunyuan.text_vector", 1,  "HunyuanVideo timestep and mean text",
                             "blocks/hunyuan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Weight text_in{"text.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_in_bias{"text.in.bias"};
  static constexpr Weight text_out{"text.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_out_bias{"text.out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(timestep, context, time_in, time_in_bias, time_out, time_out_bias, text_in,
                    text_in_bias, text_out, text_out_bias, out);
  static void execute(Context& ctx);
};

// A layer of the token refiner: hidden (B, T, D), mod (1, 1|B, 2 D), the gates of the attention and
// of the MLP -> (B, T, D). It reads the latent, of which nothing counts, so that each step makes
// its own: those of all steps at once would take their number times the memory.
struct HunyuanRefiner {
  static constexpr Info info{"hunyuan.refiner", 1,  "HunyuanVideo token refiner",
                             "blocks/hunyuan",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 16}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, mod, x, heads, eps, norm1, norm1_bias, qkv, qkv_bias, proj, proj_bias,
                    norm2, norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// byt5 (1|B, G, W) -> (1|B, G, D) f32: three layers with GELU between them. Absent: no tokens.
struct HunyuanGlyphIn {
  static constexpr Info info{"hunyuan.glyph_in", 1,  "HunyuanVideo written text",
                             "blocks/hunyuan",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> byt5{"byt5", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight middle{"middle.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"glyphs"};
  static constexpr auto ports = heddle::ports(byt5, eps, norm, norm_bias, in, in_bias, middle,
                                              middle_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// The tokens that go with the video's: vision (1|B, V, D), glyphs (1|B, G, D), text (B, T, D) ->
// (B, V + G + T, D), each with what tells its kind (the rows of kinds: text, written, picture).
struct HunyuanJoin {
  static constexpr Info info{"hunyuan.join",   1,  "HunyuanVideo texts and picture",
                             "blocks/hunyuan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vision{"vision"};
  static constexpr Input<Tensor> glyphs{"glyphs"};
  static constexpr Input<Tensor> text{"text"};
  static constexpr Weight kinds{"kinds"};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(vision, glyphs, text, kinds, out);
  static void execute(Context& ctx);
};

// reference (1|B, C, F', H', W'), a latent -> tokens (1|B, R, D) f32, as those of the video; none
// where it is absent. Throws where the level of a first frame is told, too.
struct HunyuanReferenceIn {
  static constexpr Info info{"hunyuan.reference_in", 1,  "HunyuanVideo reference picture",
                             "blocks/hunyuan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> first_timestep{"first_timestep",
                                                HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = kPatch}};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(reference, first_timestep, patch, weight, bias, out);
  static void execute(Context& ctx);
};

// img (B, L, D) with reference (1|B, R, D) behind it -> (B, L + R, D) f32.
struct HunyuanReferenceJoin {
  static constexpr Info info{"hunyuan.reference_join", 1,  "HunyuanVideo video and reference",
                             "blocks/hunyuan",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> img{"img"};
  static constexpr Input<Tensor> reference{"reference"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(img, reference, out);
  static void execute(Context& ctx);
};

// The rotary table of the joint sequence: what goes with the video at (0, 0, 0), then its tokens at
// (frame, row, column), then those of a reference picture at (-1, row, column + columns of the
// video). cos, sin: (L, d/2) f32. It reads shapes only.
struct HunyuanRope {
  static constexpr Info info{"hunyuan.rope",   1,  "HunyuanVideo rotary table",
                             "blocks/hunyuan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, F, H, W)"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> byt5{"byt5", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> vision{"vision", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 1}};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 16}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 56}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 56}};
  static constexpr Input<double> theta{"theta", Widget{.number = 256}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, context, byt5, vision, reference, patch, axis_0,
                                              axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
