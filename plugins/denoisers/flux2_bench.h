// plugins/denoisers/flux2_bench.h - FLUX.2 models for `heddle bench`. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kFlux2DevBench, kFlux2Klein9Bench, kFlux2Klein4Bench;

}  // namespace heddle::denoisers
