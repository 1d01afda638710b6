// plugins/vae/vae_bench.h - the shapes of the autoencoders of FLUX and Wan 2.1, as
// heddle.field.bench_shapes/0: decoding a random latent is measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>
#include <heddle/plugin.hpp>

#include <string_view>

namespace heddle::vae {

struct VaeBench {
  static constexpr std::string_view kind = HEDDLE_BENCH_SHAPES;
  static const heddle_list* list();
};

}  // namespace heddle::vae
