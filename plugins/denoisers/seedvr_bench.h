// plugins/denoisers/seedvr_bench.h - the shapes of SeedVR2, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kSeedvr3Bench, kSeedvr7Bench;

}  // namespace heddle::denoisers
