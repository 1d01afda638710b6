// plugins/encoders/matrix_limits.h - limits around matrices, as models have them that were trained
// for few bits: what a matrix is given and what it makes stays within numbers that its file holds
// ("input_min", "input_max", "output_min", "output_max"). Read as a model is built, and told to
// blocks as a text. Used in blocks as they are traced; any thread.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::encoders {

struct MatrixLimits {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double in_low = -kNone, in_high = kNone, out_low = -kNone, out_high = kNone;
};

// Of a module in a file that has them: four numbers, with spaces behind them.
std::string limits_text(const Checkpoint& file, const std::string& module);
// Numbers as limits_text() writes them.
std::string number_text(double number);
std::vector<double> numbers_in(const std::string& text);
// Of so many matrices, one after the other; an empty text has no limits. Throws for another number
// of them.
std::vector<MatrixLimits> limits_in(const std::string& text, std::size_t matrices);

// x through a matrix within its limits: f32.
Tensor limited(Context& ctx, const Tensor& x, const Tensor& matrix, const MatrixLimits& limits);

}  // namespace heddle::encoders
