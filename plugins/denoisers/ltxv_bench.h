// plugins/denoisers/ltxv_bench.h - the shapes of LTX-Video, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kLtxvBench, kLtxv13Bench;

}  // namespace heddle::denoisers
