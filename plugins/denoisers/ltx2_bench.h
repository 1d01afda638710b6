// plugins/denoisers/ltx2_bench.h - the shape of LTX 2, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kLtx2Bench, kLtx23Bench, kLtx25Bench;

}  // namespace heddle::denoisers
