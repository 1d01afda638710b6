#include "engine/graph/port_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/text.h"
#include "engine/graph/catalog.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kMostNames = 12;  // names in a message
constexpr double kAboveInt64 = 9223372036854775808.0;
constexpr double kAboveUint64 = 18446744073709551616.0;
using Int = std::numeric_limits<std::int64_t>;
using Unsigned = std::numeric_limits<std::uint64_t>;

constexpr std::uint32_t bit(heddle_kind kind) { return 1u << kind; }
constexpr std::uint32_t kIntegers = bit(HEDDLE_KIND_INT) | bit(HEDDLE_KIND_UINT);

bool takes_a_name(const heddle_widget* widget) {
  return widget != nullptr &&
         (widget->kind == HEDDLE_WIDGET_CHOICE || widget->kind == HEDDLE_WIDGET_FILE ||
          widget->kind == HEDDLE_WIDGET_FOLDER);
}

// 0 for a type whose values are of no kind that is known here.
std::uint32_t kinds_of(std::string_view type) {
  if (type == "INT") return kIntegers;
  if (type == "FLOAT") return kIntegers | bit(HEDDLE_KIND_FLOAT);
  if (type == "STRING") return bit(HEDDLE_KIND_STR);
  if (type == "BOOLEAN") return bit(HEDDLE_KIND_BOOL);
  return 0;
}

std::string_view advice_on(std::string_view type) {
  if (type == "INT") return "Give a whole number.";
  if (type == "FLOAT") return "Give a number.";
  if (type == "BOOLEAN") return "Give true or false.";
  return "Give text.";
}

struct Range {
  double least, most;
};
std::optional<Range> range_of(const heddle_widget* widget) {
  if (widget == nullptr) return std::nullopt;
  if (widget->min < widget->max) return Range{widget->min, widget->max};
  if (widget->kind == HEDDLE_WIDGET_SEED) return Range{0, kAboveUint64};
  if (widget->kind == HEDDLE_WIDGET_INT) return Range{-kAboveInt64, kAboveInt64};
  return std::nullopt;
}

std::string number_text(double number) {
  if (number == kAboveUint64) return cat(Unsigned::max());
  if (number == kAboveInt64) return cat(Int::max());
  const bool is_whole = std::trunc(number) == number;
  // Beyond 1e15 only the ends of 64 bits are meant as whole numbers.
  if (is_whole && (std::fabs(number) < 1e15 || number == -kAboveInt64))
    return cat(static_cast<std::int64_t>(number));
  return cat(number);
}

std::int64_t nearest_int(double whole) {
  if (whole >= kAboveInt64) return Int::max();
  return whole <= -kAboveInt64 ? Int::min() : static_cast<std::int64_t>(whole);
}

}  // namespace

PortCheck::PortCheck(const heddle_port& port, bool is_judged)
    : port_(&port),
      is_judged_(is_judged),
      least_(Int::min()),
      most_(Int::max()),
      most_unsigned_(Unsigned::max()) {
  const std::string_view type = port.type;
  const heddle_widget* widget = port.widget;
  if (takes_a_name(widget))
    kinds_ = bit(HEDDLE_KIND_STR);
  else if (const std::uint32_t kinds = kinds_of(type); kinds != 0)
    kinds_ = kinds;
  const bool is_float =
      type == "FLOAT" || (widget != nullptr && widget->kind == HEDDLE_WIDGET_FLOAT);
  is_finite_ = is_float && (port.flags & HEDDLE_PORT_NONFINITE) == 0;
  if (const std::optional<Range> range = is_judged ? std::nullopt : range_of(widget)) {
    has_range_ = true;
    least_number_ = range->least;
    most_number_ = range->most;
    least_ = nearest_int(std::ceil(range->least));
    most_ = nearest_int(std::floor(range->most));
    const bool is_signed = widget->kind == HEDDLE_WIDGET_INT && range->most <= kAboveInt64;
    if (is_signed || most_ < Int::max())
      most_unsigned_ = static_cast<std::uint64_t>(std::max<std::int64_t>(0, most_));
    else if (range->most < kAboveUint64)
      most_unsigned_ = static_cast<std::uint64_t>(range->most);
  }
  if ((kinds_ & bit(HEDDLE_KIND_INT)) == 0) {  // then none goes without a further look
    least_ = Int::max();
    most_ = Int::min();
  }
}

std::optional<std::string> PortCheck::find_fault(const heddle_value& value,
                                                 const Catalog* catalog) const {
  if ((kinds_ & bit(kind_of(value))) == 0) return kind_fault(value);
  bool below = false, above = false;
  if (const auto* number = std::get_if<double>(&value.content)) {
    if (!std::isfinite(*number)) {
      if (!is_finite_) return std::nullopt;
      return number_fault(value, false);
    }
    below = *number < least_number_;
    above = *number > most_number_;
  } else if (const auto* whole = std::get_if<std::int64_t>(&value.content)) {
    below = *whole < least_;
    above = *whole > most_;
  } else if (const auto* big = std::get_if<std::uint64_t>(&value.content)) {
    above = *big > most_unsigned_;
  } else if (const auto* text = std::get_if<std::string>(&value.content)) {
    return choice_fault(*text, catalog);
  }
  if (!has_range_ || (!below && !above)) return std::nullopt;
  return number_fault(value, below);
}

std::string PortCheck::kind_fault(const heddle_value& value) const {
  const std::string_view type =
      takes_a_name(port_->widget) ? "a name" : std::string_view(port_->type);
  return cat("expects ", type, ", got ", clip(describe(value), 200), ". ", advice_on(type));
}

std::string PortCheck::number_fault(const heddle_value& value, bool below) const {
  const auto* number = std::get_if<double>(&value.content);
  const std::string got = number != nullptr                    ? number_text(*number)
                          : kind_of(value) == HEDDLE_KIND_UINT ? cat(get_uint(value))
                                                               : cat(get_int(value));
  std::string fault = got + " is ";
  if (number != nullptr && !std::isfinite(*number))
    fault += "not a finite number";
  else
    fault += cat(below ? "below the least" : "above the greatest", " value ",
                 number_text(below ? least_number_ : most_number_));
  fault += ". Give a number";
  if (has_range_)
    fault += cat(" from ", number_text(least_number_), " to ", number_text(most_number_));
  return fault + ".";
}

std::optional<std::string> PortCheck::choice_fault(const std::string& name,
                                                   const Catalog* catalog) const {
  const heddle_widget* widget = port_->widget;
  if (is_judged_ || widget == nullptr || widget->kind != HEDDLE_WIDGET_CHOICE) return std::nullopt;
  if (catalog == nullptr && widget->source != nullptr) return std::nullopt;
  const std::vector<std::string> choices =
      catalog == nullptr ? Catalog().choices(*widget) : catalog->choices(*widget);
  if (std::ranges::find(choices, name) != choices.end()) return std::nullopt;
  return not_a_choice(name, choices);
}

void PortCheck::refuse(const std::string& fault) const {
  throw RefusedValue(cat("input ", quote(port_->name), ": ", fault));
}

std::string not_a_choice(std::string_view name, const std::vector<std::string>& choices) {
  return cat(quote(name), " is not one of the choices.", did_you_mean(name, choices),
             " Choices: ", choices.empty() ? "none, no loaded plugin brings any" : listed(choices),
             ".");
}

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    shown.push_back(quote(names[i]));
  if (names.size() > kMostNames) shown.push_back(cat("and ", names.size() - kMostNames, " more"));
  return join(shown, ", ");
}

}  // namespace heddle::engine
