// plugins/denoisers/zimage_bench.h - the shapes of Z-Image and Lumina 2, to be measured. Any
// thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kZImageBench, kLumina2Bench;

}  // namespace heddle::denoisers
