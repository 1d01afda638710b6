// plugins/denoisers/krea2_bench.h - the shape of Krea 2, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kKrea2Bench;

}  // namespace heddle::denoisers
