// plugins/denoisers/chroma_bench.h - the shapes of Chroma and Chroma Radiance, drawn at random, to
// be measured without their files. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern constinit const heddle_bench_shape_desc kChromaBench, kRadianceBench;

}  // namespace heddle::denoisers
