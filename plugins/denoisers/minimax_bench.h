// plugins/denoisers/minimax_bench.h - the shape of MiniMax H3, to be measured. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kMinimaxBench;

}  // namespace heddle::denoisers
