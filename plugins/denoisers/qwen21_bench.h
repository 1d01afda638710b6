// plugins/denoisers/qwen21_bench.h - the shape of Qwen-Image 2.1, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kQwen21Bench;

}  // namespace heddle::denoisers
