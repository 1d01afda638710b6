// plugins/denoisers/chroma_blocks.h - what Chroma makes its blocks' modulations of. All else of the
// model are FLUX.1's blocks (flux_blocks.h). Source of the architecture: lodestones' published
// model: one network, the approximator, reads the timestep, the guidance and a number of each
// modulation, and makes all M of them, each of the width D of the model. They depend on nothing
// else, so that they are made once for all N steps. Outputs are f32 in every compute type, as those
// of FLUX's modulations. G: items with a guidance of their own. Pure; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N) in [0, 1], guidance (G) -> (N, G, M H): waves of both and of each number from 0 to
// M - 1, side by side, through the first layer, H wide. Of its inputs a quarter each are waves of
// the timestep and of the guidance, half those of the number.
struct ChromaVector {
  static constexpr Info info{"chroma.vector", 1,  "Chroma timestep, guidance and numbers",
                             "blocks/chroma", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> guidance{"guidance", HEDDLE_PORT_OPTIONAL, "0 when absent"};
  static constexpr Input<std::int64_t> count{"count", Widget{.number = 344}, "M"};
  static constexpr Input<double> scale{"scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"vectors"};
  static constexpr auto ports =
      heddle::ports(timestep, guidance, count, scale, max_period, weight, bias, out);
  static void execute(Context& ctx);
};

// A layer of the approximator: x + MLP(norm(x)) of each of M vectors: (N, G, M H) -> the same.
struct ChromaLayer {
  static constexpr Info info{"chroma.layer",  1,  "Chroma approximator layer",
                             "blocks/chroma", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, eps, norm, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// The last layer of the approximator: (N, G, M H) -> all modulations (N, G, M D).
struct ChromaVectors {
  static constexpr Info info{"chroma.vectors", 1,  "Chroma modulations",
                             "blocks/chroma",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"all"};
  static constexpr auto ports = heddle::ports(x, weight, bias, out);
  static void execute(Context& ctx);
};

// Those of one block: numbers from `first` on, of width D: (N, G, M D) -> (N, G, count D).
struct ChromaModulation {
  static constexpr Info info{"chroma.modulation", 1,  "Chroma modulation of a block",
                             "blocks/chroma",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> all{"all"};
  static constexpr Input<std::int64_t> first{"first", Widget{}};
  static constexpr Input<std::int64_t> count{"count", Widget{.number = 6}};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 3072}};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(all, first, count, width, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
