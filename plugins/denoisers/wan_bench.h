// plugins/denoisers/wan_bench.h - the shapes of Wan, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kWan13Bench, kWan14Bench, kWan5Bench;

}  // namespace heddle::denoisers
