// plugins/denoisers/flux3_bench.h - FLUX 3 models for `heddle bench`. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kFlux3KleinBench, kFlux3KleinBaseBench;

}  // namespace heddle::denoisers
