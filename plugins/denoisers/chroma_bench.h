// plugins/denoisers/chroma_bench.h - the shape of Chroma, drawn at random, to be measured without
// its file. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern constinit const heddle_bench_shape_desc kChromaBench;

}  // namespace heddle::denoisers
