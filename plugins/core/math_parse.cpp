#include <array>
#include <charconv>
#include <cstdlib>

#include <heddle/plugin.hpp>

#include "math_expression.h"

namespace heddle::loaders {
namespace {

using TermKind = MathTerm::Kind;
constexpr std::size_t kLongestExpression = 4096;
constexpr int kDeepestTerm = 150;

[[noreturn]] void misread(std::size_t at, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "the expression has " + what + " at column " + std::to_string(at + 1) +
                  ". Write it as in Python, with the names of the linked values: a, b, ...");
}

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}
bool is_decimal(char c) { return c >= '0' && c <= '9'; }

class MathParser {
 public:
  explicit MathParser(std::string_view text) : text_(text) {}

  MathTerm whole() {
    MathTerm term = conditional();
    if (skip_blanks() < text_.size()) misread(at_, "'" + std::string(1, text_[at_]) + "'");
    return term;
  }

 private:
  // Levels from the loosest to the tightest: operators of one level stand side by side.
  static constexpr std::array<std::array<std::string_view, 4>, 6> kLevels{{
      {"|"},
      {"^"},
      {"&"},
      {"<<", ">>"},
      {"+", "-"},
      {"*", "//", "/", "%"},
  }};

  class Deeper {
   public:
    explicit Deeper(MathParser& parser) : parser_(parser) {
      if (++parser.depth_ > kDeepestTerm)
        misread(parser.at_, "more than " + std::to_string(kDeepestTerm) + " levels of terms");
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;

   private:
    MathParser& parser_;
  };

  std::size_t skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
    return at_;
  }

  bool take_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    if (at_ + word.size() < text_.size() && is_name_part(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }

  // An operator that is not the beginning of a longer one.
  bool take(std::string_view op) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(op)) return false;
    const char next = at_ + op.size() < text_.size() ? text_[at_ + op.size()] : '\0';
    const bool is_longer = (op == "*" && next == '*') || (op == "/" && next == '/') ||
                           ((op == "<" || op == ">") && (next == op[0] || next == '='));
    if (is_longer) return false;
    at_ += op.size();
    return true;
  }

  void expect(std::string_view op) {
    if (take(op)) return;
    const std::size_t here = skip_blanks();
    misread(here, here == text_.size() ? "no '" + std::string(op) + "'"
                                       : "'" + std::string(1, text_[here]) + "' instead of '" +
                                             std::string(op) + "'");
  }

  static MathTerm make(TermKind kind, std::size_t at, std::string text,
                       std::vector<MathTerm> operands) {
    return {kind, at, std::move(text), {}, std::move(operands)};
  }

  MathTerm conditional() {
    const Deeper deeper(*this);
    MathTerm value = either();
    if (!take_word("if")) return value;
    MathTerm condition = either();
    if (!take_word("else")) misread(skip_blanks(), "an 'if' without 'else'");
    const std::size_t at = value.at;
    std::vector<MathTerm> parts;
    parts.push_back(std::move(value));
    parts.push_back(std::move(condition));
    parts.push_back(conditional());
    return make(TermKind::conditional, at, "", std::move(parts));
  }

  MathTerm either() {
    MathTerm left = both();
    while (take_word("or")) left = joined(TermKind::either, "or", std::move(left), both());
    return left;
  }

  MathTerm both() {
    MathTerm left = negated();
    while (take_word("and")) left = joined(TermKind::both, "and", std::move(left), negated());
    return left;
  }

  MathTerm negated() {
    const Deeper deeper(*this);
    const std::size_t at = skip_blanks();
    if (!take_word("not")) return comparison();
    std::vector<MathTerm> operand;
    operand.push_back(negated());
    return make(TermKind::unary, at, "not", std::move(operand));
  }

  MathTerm comparison() {
    MathTerm first = binary(0);
    std::string operators;
    std::vector<MathTerm> operands;
    const std::size_t at = first.at;
    operands.push_back(std::move(first));
    for (bool more = true; more;) {
      more = false;
      for (const std::string_view op : {"<=", ">=", "==", "!=", "<", ">"}) {
        if (!take(op)) continue;
        operators += (operators.empty() ? "" : " ") + std::string(op);
        operands.push_back(binary(0));
        more = true;
        break;
      }
    }
    if (operators.empty()) return std::move(operands.front());
    return make(TermKind::comparison, at, std::move(operators), std::move(operands));
  }

  MathTerm binary(std::size_t level) {
    if (level == kLevels.size()) return signed_term();
    MathTerm left = binary(level + 1);
    for (bool more = true; more;) {
      more = false;
      for (const std::string_view op : kLevels[level]) {
        if (op.empty() || !take(op)) continue;
        left = joined(TermKind::binary, op, std::move(left), binary(level + 1));
        more = true;
        break;
      }
    }
    return left;
  }

  MathTerm signed_term() {
    const Deeper deeper(*this);
    const std::size_t at = skip_blanks();
    for (const std::string_view op : {"-", "+", "~"}) {
      if (!take(op)) continue;
      std::vector<MathTerm> operand;
      operand.push_back(signed_term());
      return make(TermKind::unary, at, std::string(op), std::move(operand));
    }
    MathTerm base = primary();
    if (!take("**")) return base;
    return joined(TermKind::binary, "**", std::move(base), signed_term());
  }

  MathTerm primary() {
    MathTerm term = atom();
    while (take("[")) {
      MathTerm index = conditional();
      expect("]");
      term = joined(TermKind::item, "", std::move(term), std::move(index));
    }
    return term;
  }

  MathTerm atom() {
    const std::size_t at = skip_blanks();
    if (at == text_.size()) misread(at, at == 0 ? "nothing in it" : "no value");
    if (take("(")) {
      MathTerm inner = conditional();
      expect(")");
      return inner;
    }
    if (is_decimal(text_[at]) || text_[at] == '.') return number();
    std::size_t end = at;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    const std::string name(text_.substr(at, end - at));
    for (const std::string_view word : {"", "if", "else", "and", "or", "not"})
      if (name == word) misread(at, "'" + (name.empty() ? std::string(1, text_[at]) : name) + "'");
    at_ = end;
    if (name == "True" || name == "False")
      return {TermKind::number, at, "", BigInt(name == "True" ? 1 : 0), {}};
    if (!take("(")) return make(TermKind::name, at, name, {});
    std::vector<MathTerm> operands;
    while (!take(")")) {
      if (!operands.empty()) expect(",");
      operands.push_back(conditional());
    }
    return make(TermKind::call, at, name, std::move(operands));
  }

  MathTerm number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      while (at_ < text_.size() && is_decimal(text_[at_])) ++at_;
    };
    digits();
    bool is_whole = true;
    if (at_ < text_.size() && text_[at_] == '.') {
      is_whole = false;
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      std::size_t next = at_ + 1;
      if (next < text_.size() && (text_[next] == '+' || text_[next] == '-')) ++next;
      if (next < text_.size() && is_decimal(text_[next])) {
        is_whole = false;
        at_ = next;
        digits();
      }
    }
    const std::string digits_text(text_.substr(begin, at_ - begin));
    if (digits_text == "." || (at_ < text_.size() && is_name_part(text_[at_])))
      misread(begin, "a misspelt number");
    if (!is_whole)
      return {TermKind::number, begin, "", std::strtod(digits_text.c_str(), nullptr), {}};
    BigInt whole = 0;
    for (const char digit : digits_text) whole = whole * 10 + (digit - '0');
    return {TermKind::number, begin, "", std::move(whole), {}};
  }

  static MathTerm joined(TermKind kind, std::string_view op, MathTerm left, MathTerm right) {
    const std::size_t at = left.at;
    std::vector<MathTerm> operands;
    operands.push_back(std::move(left));
    operands.push_back(std::move(right));
    return make(kind, at, std::string(op), std::move(operands));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

MathTerm parse_math(std::string_view expression) {
  if (expression.size() > kLongestExpression)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the expression has " + std::to_string(expression.size()) + " bytes, more than " +
                    std::to_string(kLongestExpression) + ". Divide it among several nodes.");
  return MathParser(expression).whole();
}

}  // namespace heddle::loaders
