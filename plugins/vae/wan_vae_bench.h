// plugins/vae/wan_vae_bench.h - the shapes of Wan's decoders for heddle.field.bench_shapes/0:
// decoding a random latent of a video is measured. Constants.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::vae {

extern const heddle_bench_shape_desc kWanVaeBench, kWan22VaeBench;

}  // namespace heddle::vae
