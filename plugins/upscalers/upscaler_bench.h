// plugins/upscalers/upscaler_bench.h - the shapes of published upscalers, as
// heddle.field.bench_shapes/0: a picture of noise is made larger. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>
#include <heddle/plugin.hpp>

#include <string_view>

namespace heddle::upscalers {

struct UpscalerBench {
  static constexpr std::string_view kind = HEDDLE_BENCH_SHAPES;
  static const heddle_list* list();
};

}  // namespace heddle::upscalers
