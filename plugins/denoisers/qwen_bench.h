// plugins/denoisers/qwen_bench.h - the shapes of Qwen-Image, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kQwenImageBench, kQwenLayeredBench;

}  // namespace heddle::denoisers
