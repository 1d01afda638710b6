// plugins/denoisers/zimage_bench.h - the shape of Z-Image, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kZImageBench;

}  // namespace heddle::denoisers
