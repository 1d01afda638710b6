#include "logic_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "math_expression.h"
#include "python_text.h"

namespace heddle::loaders {
namespace {

// What a workflow gave as "values.NAME", by NAME.
std::map<std::string, Value> grown_values(Context& ctx) {
  constexpr std::string_view kPrefix = "values.";
  const auto& io = service<heddle_io_service>();
  std::map<std::string, Value> values;
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i) {
    const std::string name = io.extra_name(ctx.raw(), i);
    const Value value = Value::share(io.extra(ctx.raw(), i));
    if (name.starts_with(kPrefix) && value) values.emplace(name.substr(kPrefix.size()), value);
  }
  return values;
}

Value no_value() { return Value::adopt(services.value->make_none()); }

MathNumber math_number(const std::string& name, const Value& value) {
  switch (value.kind()) {
    case HEDDLE_KIND_BOOL:
      return BigInt(value.as<bool>() ? 1 : 0);
    case HEDDLE_KIND_INT:
      return BigInt(value.as<std::int64_t>());
    case HEDDLE_KIND_UINT:
      return BigInt(value.as<std::uint64_t>());
    case HEDDLE_KIND_FLOAT:
      return value.as<double>();
    default:
      throw Error(HEDDLE_INVALID_ARGUMENT, "'" + name + "' is " + python_str(value) +
                                               ", which is no number. Link a number to it.");
  }
}

Value int_value(const BigInt& whole) {
  if (whole >= INT64_MIN && whole <= INT64_MAX) return value_of(std::int64_t(whole));
  if (whole >= 0 && whole <= UINT64_MAX) return value_of(std::uint64_t(whole));
  throw Error(HEDDLE_INVALID_ARGUMENT, whole.str().substr(0, 60) +
                                           " does not fit into an INT of 64 bits. Make it "
                                           "smaller.");
}

BigInt truncated_number(const MathNumber& number) {
  const auto* whole = std::get_if<BigInt>(&number);
  return whole != nullptr ? *whole : BigInt(std::trunc(std::get<double>(number)));
}

[[noreturn]] void refuse_number(std::string_view text) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "'" + std::string(text.substr(0, 60)) +
                                           "' is no finite number. Give one, as 12 or 1.5.");
}

MathNumber number_in(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) refuse_number(text);
  const std::string digits(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
  const std::size_t sign = digits[0] == '-' || digits[0] == '+' ? 1 : 0;
  const bool is_whole = digits.size() > sign && digits.size() < 400 &&
                        digits.find_first_not_of("0123456789", sign) == digits.npos;
  if (is_whole) {
    BigInt whole = 0;
    for (const char digit : digits.substr(sign)) whole = whole * 10 + (digit - '0');
    return digits[0] == '-' ? BigInt(-whole) : whole;
  }
  if (digits.find_first_not_of("0123456789+-.eE") != digits.npos) refuse_number(text);
  char* end = nullptr;
  const double real = std::strtod(digits.c_str(), &end);
  if (*end != '\0' || !std::isfinite(real)) refuse_number(text);
  return real;
}

}  // namespace

void ComfySwitchNode::execute(Context& ctx) {
  const Input<Matching>& branch = ctx[chosen] ? on_true : on_false;
  ctx[out] = ctx.has(branch) ? Value(ctx[branch]) : no_value();
}

void ComfyPassOrNoneNode::execute(Context& ctx) {
  const auto is_there = [&](const Input<Matching>& input) {
    return ctx.has(input) && !ctx[input].is(HEDDLE_KIND_NONE);
  };
  const bool first = is_there(anything), second = is_there(otherwise);
  ctx[out] = first ? Value(ctx[anything]) : second ? Value(ctx[otherwise]) : no_value();
  ctx[is_none] = !first && !second;
}

void ComfyNotNode::execute(Context& ctx) { ctx[out] = !python_bool(ctx[value]); }

void ComfyAndNode::execute(Context& ctx) {
  ctx[out] = std::ranges::all_of(grown_values(ctx),
                                 [](const auto& entry) { return python_bool(entry.second); });
}

void ComfyOrNode::execute(Context& ctx) {
  ctx[out] = std::ranges::any_of(grown_values(ctx),
                                 [](const auto& entry) { return python_bool(entry.second); });
}

void ComfyMathExpression::execute(Context& ctx) {
  std::vector<std::pair<std::string, MathNumber>> numbers;
  for (const auto& [name, value] : grown_values(ctx))
    if (!value.is(HEDDLE_KIND_NONE)) numbers.emplace_back(name, math_number(name, value));
  const MathNumber result = evaluate_math(parse_math(ctx[expression]), numbers);
  ctx[real] = math_float(result);
  ctx[whole] = int_value(truncated_number(result));
  const auto* number = std::get_if<BigInt>(&result);
  ctx[truth] = number != nullptr ? *number != 0 : std::get<double>(result) != 0;
}

void ComfyNumberConvert::execute(Context& ctx) {
  const Value from = ctx[value];
  const MathNumber number =
      from.is(HEDDLE_KIND_STR) ? number_in(from.text()) : math_number("value", from);
  if (const auto* is_real = std::get_if<double>(&number); is_real && !std::isfinite(*is_real))
    refuse_number(python_float(*is_real));
  ctx[real] = math_float(number);
  ctx[whole] = int_value(truncated_number(number));
}

void CustomCombo::execute(Context& ctx) {
  const auto& io = service<heddle_io_service>();
  Value position = value_of(std::int64_t{0});
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i)
    if (io.extra_name(ctx.raw(), i) == std::string_view("index"))
      position = Value::share(io.extra(ctx.raw(), i));
  ctx[name] = python_str(ctx[choice]);
  ctx[index] = int_value(truncated_number(math_number("index", position)));
}

void ResolutionSelector::execute(Context& ctx) {
  const std::string ratio = ctx[aspect_ratio];
  const double wide = std::strtod(ratio.c_str(), nullptr),
               high = std::strtod(ratio.c_str() + ratio.find(':') + 1, nullptr);
  const double unit = std::sqrt(ctx[megapixels] * 1024 * 1024 / (wide * high));
  const std::int64_t step = ctx[multiple];
  const auto side = [&](double parts) {
    return std::int64_t(std::nearbyint(parts * unit / double(step))) * step;
  };
  ctx[width] = side(wide);
  ctx[height] = side(high);
}

}  // namespace heddle::loaders
