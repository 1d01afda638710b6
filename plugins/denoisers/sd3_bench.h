// plugins/denoisers/sd3_bench.h - shapes of Stable Diffusion 3 medium and 3.5 to be measured. Any
// thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kSd35LargeBench, kSd35MediumBench, kSd3MediumBench;

}  // namespace heddle::denoisers
