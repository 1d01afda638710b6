// plugins/denoisers/hunyuan_bench.h - HunyuanVideo 1.0 and 1.5 for `heddle bench`. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kHunyuan10Bench, kHunyuan15Bench;

}  // namespace heddle::denoisers
