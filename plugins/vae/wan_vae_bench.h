// plugins/vae/wan_vae_bench.h - the shape of Wan 2.1's decoder for heddle.field.bench_shapes/0:
// decoding a random latent of a video is measured. A constant.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::vae {

extern const heddle_bench_shape_desc kWanVaeBench;

}  // namespace heddle::vae
