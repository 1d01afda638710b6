#include "matrix_limits.h"

#include <array>
#include <charconv>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

Tensor within(Context& ctx, const Tensor& x, double low, double high) {
  if (low == -MatrixLimits::kNone && high == MatrixLimits::kNone) return x;
  return ops::scale_clamp(ctx, x, {1, 0, low, high});
}

}  // namespace

std::string number_text(double number) {
  std::array<char, 40> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return std::string(text.data(), end) + " ";
}

std::string limits_text(const Checkpoint& file, const std::string& module) {
  std::string text;
  for (const char* limit : {".input_min", ".input_max", ".output_min", ".output_max"})
    text += number_text(file.number(module + limit));
  return text;
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc())
      throw Error(HEDDLE_INVALID_ARGUMENT, "numbers are expected, not '" + text + "'");
    at = next;
  }
  return numbers;
}

std::vector<MatrixLimits> limits_in(const std::string& text, std::size_t matrices) {
  std::vector<MatrixLimits> all(matrices);
  const std::vector<double> numbers = numbers_in(text);
  if (numbers.empty()) return all;
  if (numbers.size() != 4 * matrices)
    throw Error(HEDDLE_INVALID_ARGUMENT, "limits: " + std::to_string(4 * matrices) +
                                             " numbers are expected, not " +
                                             std::to_string(numbers.size()));
  for (std::size_t i = 0; i < matrices; ++i)
    all[i] = {numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]};
  return all;
}

Tensor limited(Context& ctx, const Tensor& x, const Tensor& matrix, const MatrixLimits& limits) {
  const Tensor made =
      blocks::wide_linear(ctx, within(ctx, x, limits.in_low, limits.in_high), matrix, {});
  return within(ctx, made, limits.out_low, limits.out_high);
}

}  // namespace heddle::encoders
