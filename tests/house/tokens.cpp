#include "tests/house/tokens.h"

#include <cctype>
#include <utility>

namespace house {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Reads one source from its first character to its last.
class Lexer {
 public:
  explicit Lexer(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text_ += line + "\n";
  }

  Tokens read() {
    while (at_ < text_.size()) next();
    return std::move(tokens_);
  }

 private:
  bool sees(const char* what) const {
    return text_.compare(at_, std::string_view(what).size(), what) == 0;
  }

  void step() {
    if (text_[at_] == '\n') {
      ++line_;
      starts_line_ = true;
    }
    ++at_;
  }
  void step_to(std::size_t end) {
    while (at_ < end && at_ < text_.size()) step();
  }

  void next() {
    const char c = text_[at_];
    if (std::isspace(static_cast<unsigned char>(c))) return step();
    const bool first = std::exchange(starts_line_, false);
    if (c == '#' && first) return directive();
    if (sees("//")) return line_comment(first);
    if (sees("/*")) return block_comment(first);
    if (c == '"' || c == '\'') return quoted(c);
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    if (in_word(c)) return word();
    const std::size_t length = sees("::") || sees("->") ? 2 : 1;
    add(Token::sign, text_.substr(at_, length));
    step_to(at_ + length);
  }

  void add(Token::Kind kind, std::string text) {
    tokens_.all.push_back({kind, std::move(text), line_});
  }

  // To the end of its line, or of the last that a backslash joins to it.
  void directive() {
    std::size_t end = text_.find('\n', at_);
    while (end != std::string::npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
    step_to(end);
  }

  void line_comment(bool alone) {
    const std::size_t end = text_.find('\n', at_);
    if (alone) tokens_.comments[line_] = text_.substr(at_ + 2, end - at_ - 2);
    step_to(end);
  }

  void block_comment(bool alone) {
    const std::size_t closed = text_.find("*/", at_ + 2);
    const std::size_t end = closed == std::string::npos ? text_.size() : closed + 2;
    for (step_to(at_ + 2); at_ < end; step()) {
      if (alone && text_[at_] != '\n') tokens_.comments[line_] += text_[at_];
    }
  }

  void quoted(char quote) {
    add(Token::literal, "");
    step();
    while (at_ < text_.size() && text_[at_] != quote) step_to(at_ + (text_[at_] == '\\' ? 2 : 1));
    step();
  }

  // With its separators and suffixes; what a sign or a letter of it means is no matter here.
  void number() {
    add(Token::literal, "");
    while (in_word(text_[at_]) || text_[at_] == '.' ||
           (text_[at_] == '\'' && in_word(text_[at_ + 1])))
      step();
  }

  void word() {
    std::size_t end = at_;
    while (in_word(text_[end])) ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (text_[end] == '"' && word.ends_with('R')) {  // R"x(...)x"
      const std::size_t open = text_.find('(', end);
      const std::string close = ")" + text_.substr(end + 1, open - end - 1) + "\"";
      add(Token::literal, "");
      return step_to(text_.find(close, open) + close.size());
    }
    add(Token::word, word);
    step_to(end);
  }

  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
  Tokens tokens_;
};

}  // namespace

Tokens tokens_of(const std::vector<std::string>& lines) { return Lexer(lines).read(); }

}  // namespace house
