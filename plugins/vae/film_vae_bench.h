// plugins/vae/film_vae_bench.h - the shapes of the decoders of HunyuanVideo 1.0, SeedVR2 and LTX
// 2.3 for heddle.field.bench_shapes/0. Constants.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::vae {

extern const heddle_bench_shape_desc kHunyuanVaeBench, kSeedvrVaeBench, kLtx23VaeBench;

}  // namespace heddle::vae
