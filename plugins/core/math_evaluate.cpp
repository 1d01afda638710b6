#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include <heddle/plugin.hpp>

#include "math_expression.h"

namespace heddle::loaders {
namespace {

using TermKind = MathTerm::Kind;
using List = std::vector<MathNumber>;
using Operand = std::variant<MathNumber, List>;
constexpr int kGreatestExponent = 4000;
constexpr unsigned kMostBits = 1u << 20;  // of a whole number

[[noreturn]] void refuse(const MathTerm& term, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "the expression " + what + " (column " +
                                           std::to_string(term.at + 1) +
                                           "). Change it, or what is linked to it.");
}

const BigInt* whole_of(const MathNumber& number) { return std::get_if<BigInt>(&number); }
bool truth_of(const MathNumber& number) {
  const BigInt* whole = whole_of(number);
  return whole != nullptr ? *whole != 0 : std::get<double>(number) != 0;
}

MathNumber within_bits(const MathTerm& term, BigInt number) {
  if (number != 0 && msb(abs(number)) > kMostBits) refuse(term, "makes too large a number");
  return number;
}
MathNumber from_double(const MathTerm& term, double number) {  // int() of it
  if (!std::isfinite(number)) refuse(term, "makes a number that is not finite");
  return BigInt(std::trunc(number));
}

// Python's floor division: the remainder has the divisor's sign.
BigInt floor_quotient(const BigInt& a, const BigInt& b) {
  BigInt quotient, remainder;
  divide_qr(a, b, quotient, remainder);
  if (remainder != 0 && (remainder < 0) != (b < 0)) --quotient;
  return quotient;
}
double floor_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

MathNumber power(const MathTerm& term, const MathNumber& a, const MathNumber& b) {
  const double exponent = math_float(b);
  if (std::fabs(exponent) > kGreatestExponent)
    refuse(term, "has an exponent above " + std::to_string(kGreatestExponent));
  const BigInt *base = whole_of(a), *whole = whole_of(b);
  if (base != nullptr && whole != nullptr && *whole >= 0) {
    if (*base != 0 && double(msb(abs(*base))) * exponent > kMostBits)
      refuse(term, "makes too large a number");
    return BigInt(pow(*base, unsigned(*whole)));
  }
  const double number = math_float(a);
  if (number == 0 && exponent < 0) refuse(term, "divides by zero");
  const double result = std::pow(number, exponent);
  if (std::isnan(result) && !std::isnan(number)) refuse(term, "makes no real number");
  return result;
}

MathNumber bitwise(const MathTerm& term, const MathNumber& a, const MathNumber& b) {
  const BigInt *left = whole_of(a), *right = whole_of(b);
  if (left == nullptr || right == nullptr)
    refuse(term, "uses '" + term.text + "' on numbers that are not whole");
  if (term.text == "<<" || term.text == ">>") {
    if (*right < 0) refuse(term, "shifts by a negative number");
    if (*right > kMostBits) refuse(term, "shifts by too many bits");
    const BigInt factor = BigInt(1) << unsigned(*right);
    return term.text == "<<" ? within_bits(term, *left * factor)
                             : MathNumber(floor_quotient(*left, factor));
  }
  // In two's complement, of which cpp_int knows nothing.
  const std::size_t bits =
      2 + std::max(*left == 0 ? 0 : msb(abs(*left)), *right == 0 ? 0 : msb(abs(*right)));
  const BigInt wrap = BigInt(1) << unsigned(bits);
  const BigInt x = *left < 0 ? BigInt(*left + wrap) : *left,
               y = *right < 0 ? BigInt(*right + wrap) : *right;
  BigInt result = term.text == "&"   ? BigInt(x & y)
                  : term.text == "|" ? BigInt(x | y)
                                     : BigInt(x ^ y);
  if (bit_test(result, unsigned(bits - 1))) result -= wrap;
  return result;
}

MathNumber arithmetic(const MathTerm& term, const MathNumber& a, const MathNumber& b) {
  const std::string& op = term.text;
  if (op == "**") return power(term, a, b);
  if (op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>") return bitwise(term, a, b);
  if ((op == "/" || op == "//" || op == "%") && !truth_of(b)) refuse(term, "divides by zero");
  const BigInt *left = whole_of(a), *right = whole_of(b);
  if (left != nullptr && right != nullptr && op != "/") {
    if (op == "+") return within_bits(term, *left + *right);
    if (op == "-") return within_bits(term, *left - *right);
    if (op == "*") return within_bits(term, *left * *right);
    const BigInt quotient = floor_quotient(*left, *right);
    if (op == "//") return quotient;
    return BigInt(*left - quotient * *right);
  }
  const double x = math_float(a), y = math_float(b);
  if (op == "+") return x + y;
  if (op == "-") return x - y;
  if (op == "*") return x * y;
  if (op == "/") return x / y;
  if (op == "%") return floor_remainder(x, y);
  return std::round((x - floor_remainder(x, y)) / y);
}

int compare(const MathNumber& a, const MathNumber& b) {  // 2: one is no number
  const BigInt *left = whole_of(a), *right = whole_of(b);
  if (left != nullptr && right != nullptr) return *left < *right ? -1 : *left > *right ? 1 : 0;
  const double x = math_float(a), y = math_float(b);
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

bool holds(const std::string& op, int order) {
  if (order == 2) return op == "!=";
  if (op == "<") return order < 0;
  if (op == ">") return order > 0;
  if (op == "<=") return order <= 0;
  if (op == ">=") return order >= 0;
  return (op == "==") == (order == 0);
}

// round(x, digits): of the decimal digits that the number really has, to the nearest even.
MathNumber rounded(const MathTerm& term, const MathNumber& number, const MathNumber* digits) {
  if (digits == nullptr) {
    if (whole_of(number) != nullptr) return number;
    return from_double(term, std::nearbyint(std::get<double>(number)));
  }
  const BigInt* count = whole_of(*digits);
  if (count == nullptr) refuse(term, "rounds to digits that are no whole number");
  if (abs(*count) > 400) return *count > 0 ? number : MathNumber(BigInt(0));
  const int places = int(*count);
  const BigInt* whole = whole_of(number);
  if (whole == nullptr && places >= 0) {
    char text[800];
    std::snprintf(text, sizeof text, "%.*f", places, std::get<double>(number));
    return std::strtod(text, nullptr);
  }
  if (whole == nullptr) {
    const double unit = std::pow(10.0, -places);
    return std::nearbyint(std::get<double>(number) / unit) * unit;
  }
  if (places >= 0) return number;
  const BigInt unit = pow(BigInt(10), unsigned(-places));
  BigInt quotient = floor_quotient(*whole, unit);
  const BigInt twice = 2 * (*whole - quotient * unit);
  if (twice > unit || (twice == unit && bit_test(abs(quotient), 0))) ++quotient;
  return BigInt(quotient * unit);
}

class MathEvaluator {
 public:
  explicit MathEvaluator(const std::vector<std::pair<std::string, MathNumber>>& values)
      : values_(values) {}

  MathNumber number(const MathTerm& term) const {
    Operand value = evaluate(term);
    if (auto* number = std::get_if<MathNumber>(&value)) return std::move(*number);
    refuse(term, "takes a list for a number");
  }

 private:
  Operand evaluate(const MathTerm& term) const {
    const std::vector<MathTerm>& of = term.operands;
    switch (term.kind) {
      case TermKind::number:
        return term.number;
      case TermKind::name:
        return named(term);
      case TermKind::unary:
        return unary(term);
      case TermKind::binary:
        return arithmetic(term, number(of[0]), number(of[1]));
      case TermKind::both:
      case TermKind::either: {
        const MathNumber first = number(of[0]);
        return truth_of(first) == (term.kind == TermKind::either) ? Operand(first)
                                                                  : evaluate(of[1]);
      }
      case TermKind::comparison:
        return MathNumber(BigInt(chain(term) ? 1 : 0));
      case TermKind::conditional:
        return evaluate(truth_of(number(of[1])) ? of[0] : of[2]);
      case TermKind::item:
        return item(term);
      case TermKind::call:
        return call(term);
    }
    return {};
  }

  Operand named(const MathTerm& term) const {
    List all;
    std::string known;
    for (const auto& [name, value] : values_) {
      if (name == term.text) return value;
      all.push_back(value);
      known += (known.empty() ? "" : ", ") + name;
    }
    if (term.text == "values") return all;
    refuse(term, "uses '" + term.text + "', and the linked values are " +
                     (known.empty() ? "none" : known));
  }

  Operand unary(const MathTerm& term) const {
    const MathNumber value = number(term.operands[0]);
    const BigInt* whole = whole_of(value);
    if (term.text == "not") return MathNumber(BigInt(truth_of(value) ? 0 : 1));
    if (term.text == "+") return value;
    if (term.text == "-")
      return whole != nullptr ? MathNumber(BigInt(-*whole)) : MathNumber(-std::get<double>(value));
    if (whole == nullptr) refuse(term, "uses '~' on a number that is not whole");
    return MathNumber(BigInt(-*whole - 1));
  }

  bool chain(const MathTerm& term) const {
    std::istringstream operators(term.text);
    MathNumber left = number(term.operands[0]);
    std::string op;
    for (std::size_t i = 1; operators >> op; ++i) {
      MathNumber right = number(term.operands[i]);
      if (!holds(op, compare(left, right))) return false;
      left = std::move(right);
    }
    return true;
  }

  Operand item(const MathTerm& term) const {
    const Operand list = evaluate(term.operands[0]);
    const auto* items = std::get_if<List>(&list);
    if (items == nullptr) refuse(term, "takes an item of what is no list");
    const MathNumber index = number(term.operands[1]);
    const BigInt* whole = whole_of(index);
    if (whole == nullptr) refuse(term, "has an index that is no whole number");
    const BigInt at = *whole < 0 ? BigInt(*whole + items->size()) : *whole;
    if (at < 0 || at >= items->size())
      refuse(term, "takes item " + whole->str() + " of " + std::to_string(items->size()));
    return (*items)[std::size_t(at)];
  }

  // Of one list, or of the numbers themselves.
  List numbers(const MathTerm& term) const {
    List all;
    if (term.operands.size() == 1) {
      Operand only = evaluate(term.operands[0]);
      if (auto* list = std::get_if<List>(&only)) return std::move(*list);
      all.push_back(std::get<MathNumber>(only));
      return all;
    }
    for (const MathTerm& operand : term.operands) all.push_back(number(operand));
    return all;
  }

  Operand call(const MathTerm& term) const {
    const std::string& name = term.text;
    if (name == "sum" || name == "min" || name == "max") return fold(term);
    const std::size_t count = term.operands.size();
    const bool may_have_two = name == "round" || name == "log" || name == "pow";
    if (count == 0 || count > (may_have_two ? 2u : 1u) || (name == "pow" && count != 2))
      refuse(term, "calls " + name + " with " + std::to_string(count) + " values");
    const MathNumber x = number(term.operands[0]);
    if (name == "pow") return power(term, x, number(term.operands[1]));
    if (name == "round") {
      if (count == 1) return rounded(term, x, nullptr);
      const MathNumber digits = number(term.operands[1]);
      return rounded(term, x, &digits);
    }
    const BigInt* whole = whole_of(x);
    if (name == "abs")
      return whole != nullptr ? MathNumber(BigInt(abs(*whole)))
                              : MathNumber(std::fabs(std::get<double>(x)));
    if (name == "int" || name == "ceil" || name == "floor") {
      if (whole != nullptr) return x;
      const double real = std::get<double>(x);
      return from_double(term, name == "int"    ? real
                               : name == "ceil" ? std::ceil(real)
                                                : std::floor(real));
    }
    if (name == "log" && count == 2)
      return MathNumber(real(term, "log", math_float(x)) /
                        real(term, "log", math_float(number(term.operands[1]))));
    return MathNumber(real(term, name, math_float(x)));
  }

  Operand fold(const MathTerm& term) const {
    const List all = numbers(term);
    if (term.text == "sum") {
      MathNumber total = BigInt(0);
      const MathTerm plus{TermKind::binary, term.at, "+", {}, {}};
      for (const MathNumber& number : all) total = arithmetic(plus, total, number);
      return total;
    }
    if (all.empty()) refuse(term, "asks for the " + term.text + " of nothing");
    MathNumber best = all.front();
    for (const MathNumber& number : all)
      if (compare(number, best) == (term.text == "min" ? -1 : 1)) best = number;
    return best;
  }

  static double real(const MathTerm& term, const std::string& name, double x) {
    const bool is_log = name.starts_with("log");
    if ((is_log && x <= 0) || (name == "sqrt" && x < 0))
      refuse(term, "takes the " + name + " of " + std::to_string(x));
    if (name == "sqrt") return std::sqrt(x);
    if (name == "log") return std::log(x);
    if (name == "log2") return std::log2(x);
    if (name == "log10") return std::log10(x);
    if (name == "sin") return std::sin(x);
    if (name == "cos") return std::cos(x);
    if (name == "tan") return std::tan(x);
    if (name == "float") return x;
    refuse(term, "calls '" + name +
                     "'; the functions are sum, min, max, abs, round, pow, sqrt, ceil, floor, log, "
                     "log2, log10, sin, cos, tan, int and float");
  }

  const std::vector<std::pair<std::string, MathNumber>>& values_;
};

}  // namespace

double math_float(const MathNumber& number) {
  const BigInt* whole = whole_of(number);
  if (whole == nullptr) return std::get<double>(number);
  if (abs(*whole) < (BigInt(1) << 63)) return double(std::int64_t(*whole));
  const double real = std::strtod(whole->str().c_str(), nullptr);  // rounds to the nearest
  if (std::isinf(real))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the expression makes a number too large for a FLOAT. Make it smaller.");
  return real;
}

MathNumber evaluate_math(const MathTerm& term,
                         const std::vector<std::pair<std::string, MathNumber>>& values) {
  const MathNumber result = MathEvaluator(values).number(term);
  if (whole_of(result) == nullptr && !std::isfinite(std::get<double>(result)))
    refuse(term, "makes a number that is not finite");
  return result;
}

}  // namespace heddle::loaders
