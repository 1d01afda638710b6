// The values that a sweep feeds to an input: the ends of its range and their neighbours, powers of
// two at which narrower integers wrap, and numbers that are none. Whether an input has to take one
// is told by its declaration alone, in another way than the engine goes.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/graph/node_type.h"
#include "heddle/abi/node.h"

namespace heddle::test {

struct SweepValue {
  std::string text;  // as test.raw reads it
  bool fits;         // the declaration lets it through
};

inline bool is_int_port(const heddle_port& port) { return port.type == std::string("INT"); }
inline bool is_float_port(const heddle_port& port) { return port.type == std::string("FLOAT"); }
inline bool is_choice_port(const heddle_port& port) {
  return port.widget != nullptr && port.widget->kind == HEDDLE_WIDGET_CHOICE;
}

// There is no checkpoint among the models here, so nothing can be chosen.
inline bool reads_checkpoint(const engine::NodeType& type) {
  for (std::uint32_t i = 0; i < type.input_count(); ++i) {
    const heddle_widget* const widget = type.input(i).widget;
    if (widget != nullptr && widget->source != nullptr &&
        widget->source == std::string("checkpoints"))
      return true;
  }
  return false;
}

namespace sweep_detail {

using Wide = __int128;
constexpr Wide kTop = Wide{1} << 64;

struct Ends {
  long double least, most;
};
inline Ends ends_of(const heddle_port& port) {
  const long double infinity = std::numeric_limits<long double>::infinity();
  const heddle_widget* widget = port.widget;
  if (widget != nullptr && widget->min < widget->max) return {widget->min, widget->max};
  if (widget != nullptr && widget->kind == HEDDLE_WIDGET_SEED) return {0, 18446744073709551615.0L};
  if (is_int_port(port))
    return {-9223372036854775808.0L,
            widget != nullptr ? 9223372036854775807.0L : 18446744073709551615.0L};
  return {-infinity, infinity};
}

inline SweepValue whole_value(const heddle_port& port, Wide number) {
  const Ends ends = ends_of(port);  // a long double holds all of 64 bits
  const bool fits = static_cast<long double>(number) >= ends.least &&
                    static_cast<long double>(number) <= ends.most;
  const bool is_big = number > std::numeric_limits<std::int64_t>::max();
  return {is_big ? engine::cat("u:", static_cast<std::uint64_t>(number))
                 : engine::cat("i:", static_cast<std::int64_t>(number)),
          fits};
}
inline SweepValue real_value(const heddle_port& port, double number) {
  const Ends ends = ends_of(port);
  const bool fits =
      is_float_port(port) && std::isfinite(number) && number >= ends.least && number <= ends.most;
  const bool may_be_odd = (port.flags & HEDDLE_PORT_NONFINITE) != 0 && !std::isfinite(number);
  return {engine::cat("f:", number), fits || (is_float_port(port) && may_be_odd)};
}

}  // namespace sweep_detail

// Of an INT or FLOAT port.
inline std::vector<SweepValue> numbers_for(const heddle_port& port) {
  using namespace sweep_detail;
  const Wide least64 = std::numeric_limits<std::int64_t>::min();
  const auto [least, most] = ends_of(port);
  std::vector<Wide> numbers;
  for (const int power : {31, 32, 63}) {
    numbers.push_back(Wide{1} << power);
    numbers.push_back(-(Wide{1} << power));
  }
  numbers.push_back((Wide{1} << 32) + 2);  // 2, where 32 bits are kept of it
  numbers.push_back(kTop - 1);
  numbers.push_back(0);
  for (const long double end : {least, most})
    for (const int off : {-1, 0, 1})
      if (std::isfinite(end)) numbers.push_back(static_cast<Wide>(end) + off);
  std::vector<SweepValue> values;
  for (const Wide number : numbers)
    if (number >= least64 && number < kTop) values.push_back(whole_value(port, number));
  const double inf = std::numeric_limits<double>::infinity();
  for (const double number : {std::nan(""), inf, -inf, 1e-300, -1e300, 1e300})
    values.push_back(real_value(port, number));
  for (const long double end : {least, most}) {
    if (!is_float_port(port) || !std::isfinite(end)) continue;
    const double at = static_cast<double>(end);
    for (const double number : {at, std::nextafter(at, -inf), std::nextafter(at, inf)})
      values.push_back(real_value(port, number));
  }
  return values;
}

// Values beside the one that is swept, where a default would take long or does not go with the
// models here: by class and input, or by input alone.
inline std::optional<std::string> small_literal(const std::string& name) {
  static const std::map<std::string, std::string> known = {
      {"steps", "3"},
      {"width", "64"},
      {"height", "48"},
      {"tokens", "4"},
      {"length", "1"},
      {"max_length", "2"},
      {"channels", "16"},
      {"resolution_level", "0"},
      {"video_frames", "1"},
      {"pooled_width", "8"},
      {"megapixels", "0.01"},
      {"final_width", "64"},
      {"final_height", "64"},
      {"cell_width", "32"},
      {"cell_height", "32"},
      {"resize_method", R"("Stretch")"},
      {"clip_name", R"("clip_l.safetensors")"},
      {"clip_name1", R"("clip_l.safetensors")"},
      {"clip_name2", R"("t5.safetensors")"},
  };
  const auto found = known.find(name);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace heddle::test
