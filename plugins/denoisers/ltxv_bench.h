// plugins/denoisers/ltxv_bench.h - the shape of LTX-Video, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kLtxvBench;

}  // namespace heddle::denoisers
