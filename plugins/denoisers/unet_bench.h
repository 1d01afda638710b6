// plugins/denoisers/unet_bench.h - UNets of Stable Diffusion 1.5 and SDXL to measure.
#pragma once

#include <heddle/diffusion/bench_shapes.h>

namespace heddle::denoisers {

extern const heddle_bench_shape_desc kSd15Bench, kSdxlBench, kLotusBench, kSdX4Bench;

}  // namespace heddle::denoisers
