// plugins/encoders/text_projection.h - what LTX 2 makes of the states of all layers of its language
// model before its connectors read them: normalised, multiplied by one matrix, or since 2.3 by two,
// for video and for sound.
//
// Inputs   states      (1, S, L D)   loop-invariant  of L layers side by side
//          factors     (L)           loop-invariant  of files with one matrix: layer l of the
//          states addends     (L)                           times factors[l] plus addends[l] is
//          read
// Output   projected   (1, S, P) f32, of two matrices first what is for video, then for sound
//
// Source of the architecture: diffusers' LTX2TextConnectors (text_proj_in, and
// video_text_proj_in with audio_text_proj_in, before which each token of each layer is under a norm
// without weights and the whole is times the root of P_i / D). A row of a matrix has the layers of
// an element beside each other, D times L. The config gives L as "states". Settings "width" (P) and
// "reads" (L D). By the publisher's names ("text_embedding_projection.aggregate_embed.weight") and
// diffusers'. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

// states (1, S, L D) -> rows (1, S, D L), normalised, in the compute type.
struct ProjectionRows {
  static constexpr Info info{"text_projection.rows", 1,  "Layers of a text, normalised",
                             "blocks/language",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> states{"states"};
  static constexpr Input<Tensor> factors{"factors", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> addends{"addends", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> layers{"layers", Widget{.number = 49}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Output<Tensor> out{"rows"};
  static constexpr auto ports = heddle::ports(states, factors, addends, layers, eps, out);
  static void execute(Context& ctx);
};

// rows (1, S, D L) -> projected (1, S, P) f32: times the matrix, times `scale`, plus the bias.
struct ProjectionMatrix {
  static constexpr Info info{"text_projection.matrix", 1,  "Projection of a text's layers",
                             "blocks/language",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> rows{"rows"};
  static constexpr Input<double> scale{"scale", Widget{.number = 1}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"projected"};
  static constexpr auto ports = heddle::ports(rows, scale, weight, bias, out);
  static void execute(Context& ctx);
};

struct TextProjection {
  static constexpr Family family{"text_projection", "text_projection", 1,
                                 "LTX 2: the projection of its text encoder's layers"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
