// The expressions of ComfyMathExpression: Python's, over numbers. Pure; any thread.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heddle::loaders {

using BigInt = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>,
                                             boost::multiprecision::et_off>;
using MathNumber = std::variant<BigInt, double>;  // a bool is 0 or 1

// A node of the syntax tree. Which operands it has follows from `kind`.
struct MathTerm {
  enum class Kind {
    number,
    name,         // `text`
    unary,        // `text` is "-", "+", "~" or "not"
    binary,       // `text` is the operator
    both,         // and
    either,       // or
    comparison,   // operands, and operators between them in `text`, a blank between two
    conditional,  // value, condition, other value
    item,         // list, index
    call          // `text` is the function
  };
  Kind kind = Kind::number;
  std::size_t at = 0;  // where it begins, in bytes
  std::string text = {};
  MathNumber number = {};
  std::vector<MathTerm> operands = {};
};

// Throws Error(HEDDLE_INVALID_ARGUMENT) with the place. At most 4096 bytes, 50 parentheses deep.
MathTerm parse_math(std::string_view expression);

// `values` by their names, in order. The name "values" is the list of them. Throws
// Error(HEDDLE_INVALID_ARGUMENT) where Python would raise, and where the result is no number.
MathNumber evaluate_math(const MathTerm& term,
                         const std::vector<std::pair<std::string, MathNumber>>& values);

// float(number); throws where it is too large.
double math_float(const MathNumber& number);

}  // namespace heddle::loaders
