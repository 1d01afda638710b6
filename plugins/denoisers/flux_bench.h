// plugins/denoisers/flux_bench.h - the shapes of the FLUX models, as heddle.field.bench_shapes/0:
// what to draw at random to measure them without their files. Any thread.
#pragma once

#include <heddle/field/bench_shapes.h>
#include <heddle/plugin.hpp>

#include <string_view>

namespace heddle::denoisers {

struct FluxBench {
  static constexpr std::string_view kind = HEDDLE_BENCH_SHAPES;
  static const heddle_list* list();
};

}  // namespace heddle::denoisers
