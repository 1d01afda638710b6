#include "engine/cli/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::Json;

std::optional<Json> read_json(std::string_view text) {
  try {
    return engine::parse_json(text, "");
  } catch (const Error&) {
    return std::nullopt;  // an ordinary text
  }
}

[[noreturn]] void refuse(std::string_view range, std::string_view why) {
  throw Error(Code::invalid_argument, cat("the range ", engine::quote(range), " ", why));
}

void check_count(std::string_view range, double count) {
  if (count > static_cast<double>(kMostRuns))
    refuse(range, cat("makes more than ", kMostRuns, " runs. Make it shorter."));
  if (count < 1) refuse(range, "is empty: write the smaller number first.");
}

std::vector<std::string> integers(std::string_view range, const Json& first, const Json& last) {
  if (!first.is_integer() || !last.is_integer())
    refuse(range, "is for an INT: both ends have to be whole numbers.");
  check_count(range, last.as_double() - first.as_double() + 1);
  std::vector<std::string> values;
  if (first.kind() == Json::Kind::integer && last.kind() == Json::Kind::integer) {
    for (std::int64_t value = first.as_int64(); value < last.as_int64(); ++value)
      values.push_back(cat(value));
  } else {
    // Seeds go beyond the signed integers.
    if (first.as_double() < 0) refuse(range, "is too long.");
    for (std::uint64_t value = first.as_uint64(); value < last.as_uint64(); ++value)
      values.push_back(cat(value));
  }
  if (values.size() >= kMostRuns) refuse(range, cat("makes more than ", kMostRuns, " runs."));
  values.push_back(engine::write_json(last));
  return values;
}

std::vector<std::string> reals(std::string_view range, double first, double last) {
  // A little more, so that 0.1..2.1 has its last value in spite of rounding.
  const double count = std::floor(last - first + 1e-9) + 1;
  check_count(range, count);
  std::vector<std::string> values;
  for (double i = 0; i < count; ++i) values.push_back(cat(first + i));
  return values;
}

std::optional<std::pair<Json, Json>> ends_of_range(std::string_view value) {
  const std::size_t dots = value.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::optional<Json> first = read_json(value.substr(0, dots));
  std::optional<Json> last = read_json(value.substr(dots + 2));
  if (!first || !last || !first->is_number() || !last->is_number()) return std::nullopt;
  const bool finite = std::isfinite(first->as_double()) && std::isfinite(last->as_double());
  if (!finite) return std::nullopt;
  return std::pair(std::move(*first), std::move(*last));
}

}  // namespace

InputKind kind_of_type(std::string_view declared) {
  const std::string types = cat(",", declared, ",");
  if (types.find(",FLOAT,") != std::string::npos) return InputKind::real;
  return types.find(",INT,") != std::string::npos ? InputKind::integer : InputKind::other;
}

std::vector<std::string> values_of(std::string_view value, InputKind kind) {
  if (kind == InputKind::other) return {std::string(value)};
  if (const auto ends = ends_of_range(value)) {
    return kind == InputKind::integer
               ? integers(value, ends->first, ends->second)
               : reals(value, ends->first.as_double(), ends->second.as_double());
  }
  const std::optional<Json> json = read_json(value);
  // A link is an array, too, but its first element is a text: ["4", 0].
  if (!json || !json->is_array() || !std::ranges::all_of(json->as_array(), &Json::is_number))
    return {std::string(value)};
  if (json->size() == 0)
    throw Error(Code::invalid_argument, "the list [] has no value: write for example [3,5,8].");
  std::vector<std::string> values;
  for (const Json& element : json->as_array()) values.push_back(engine::write_json(element));
  return values;
}

void Sweep::add(std::vector<std::string> values) {
  if (values.size() > kMostRuns / runs_)
    throw Error(Code::invalid_argument,
                cat("the ranges and lists make more than ", kMostRuns, " runs together."));
  runs_ *= values.size();
  axes_.push_back(std::move(values));
}

std::vector<std::string> Sweep::values(std::size_t run) const {
  std::vector<std::string> values(axes_.size());
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    values[axis] = axes_[axis][run % axes_[axis].size()];
    run /= axes_[axis].size();
  }
  return values;
}

}  // namespace heddle::cli
