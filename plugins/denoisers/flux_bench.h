// plugins/denoisers/flux_bench.h - the shapes of the FLUX models, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kFluxDevBench, kFluxSchnellBench, kTinyScenesBench;

}  // namespace heddle::denoisers
