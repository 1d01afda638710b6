#include "tests/house/outline.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tests/house/tokens.h"

namespace house {
namespace {

bool is_macro(const Token& token) {
  return token.kind == Token::word && token.text.size() > 2 &&
         std::ranges::all_of(token.text, [](unsigned char c) {
           return std::isupper(c) || std::isdigit(c) || c == '_';
         });
}

// The tokens of one declaration before its body or its semicolon, with what stands in parentheses
// left out but for its first token.
struct Head {
  std::vector<Token>
      tokens;  // without templates' parameters, attributes, macros and their arguments
  bool has_parameters = false;  // something in parentheses: of a function, or of a pointer to one
  bool has_value = false;       // an equals sign
  std::size_t before = 0;       // how many tokens stand before the parameters
  int line = 0;
  std::string macro;  // what it begins with, if that is a macro, with its arguments

  bool begins(const char* word) const { return !tokens.empty() && tokens.front().is(word); }
  bool names(const char* word) const {
    return std::ranges::any_of(tokens, [&](const Token& t) { return t.is(word); });
  }
};

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& lines) : source_(tokens_of(lines)) {}

  Outline read() {
    scope(nullptr);
    if (at_ < source_.all.size()) unmatched(source_.all[at_].line);
    return std::move(outline_);
  }

 private:
  [[noreturn]] static void unmatched(int line) {
    throw std::runtime_error("unmatched brace in line " + std::to_string(line));
  }
  bool ended() const { return at_ >= source_.all.size(); }
  const Token& here() const {
    if (ended()) unmatched(source_.all.empty() ? 0 : source_.all.back().line);
    return source_.all[at_];
  }
  bool sees(const char* what, std::size_t ahead = 0) const {
    return at_ + ahead < source_.all.size() && source_.all[at_ + ahead].is(what);
  }

  // From an opening sign behind its closing one. Classes within are read, too, when `classes` says
  // so.
  void group(bool classes = false) {
    int depth = 0;
    const int line = here().line;
    do {
      if (ended()) unmatched(line);
      if (sees("(") || sees("[") || sees("{")) ++depth;
      if (sees(")") || sees("]") || sees("}")) --depth;
      if (classes && (sees("struct") || sees("class") || sees("union")) && starts_class()) {
        declaration(nullptr);
        continue;
      }
      ++at_;
    } while (depth > 0);
  }

  // <...>, where it is one: what compares or shifts is not met in heads.
  void angles() {
    int depth = 0;
    do {
      if (sees("(") || sees("{") || sees("[")) {
        group();
        continue;
      }
      if (sees("<")) ++depth;
      if (sees(">")) --depth;
      here();
      ++at_;
    } while (depth > 0);
  }

  // Within a function: `struct Name {` or `struct Name : Base {`, not `struct stat buffer;`, nor a
  // template's `class T`.
  bool starts_class() const {
    if (at_ > 0 && (source_.all[at_ - 1].is("<") || source_.all[at_ - 1].is(",") ||
                    source_.all[at_ - 1].is("enum")))
      return false;
    for (std::size_t i = at_ + 1; i < source_.all.size(); ++i) {
      const Token& t = source_.all[i];
      if (t.is("{")) return true;
      if (t.is(";") || t.is("(") || t.is(")") || t.is("=") || t.is("*") || t.is("&")) return false;
    }
    return false;
  }

  // All declarations up to the closing brace, which is left standing, or the end.
  void scope(Class* owner) {
    while (!ended() && !sees("}")) {
      if (owner && (sees("public") || sees("private") || sees("protected"))) {
        while (!sees(":")) ++at_;
        ++at_;
        continue;
      }
      declaration(owner);
    }
  }

  // The part of a head that is left out of it: whether there was one.
  bool left_out(Head& head) {
    if (sees("template") && head.tokens.empty()) {
      ++at_;
      if (sees("<")) angles();
      return true;
    }
    if (sees("[") && sees("[", 1)) {
      group();
      return true;
    }
    const bool specifier = sees("alignas") || sees("__attribute__") || sees("noexcept") ||
                           sees("decltype") || sees("explicit") || sees("requires") ||
                           sees("extern") || sees("__launch_bounds__");
    if ((specifier || is_macro(here())) && sees("(", 1)) {
      const bool first = head.tokens.empty() && is_macro(here());
      std::string text = here().text;
      ++at_;
      const std::size_t from = at_;
      group();
      if (first) {
        for (std::size_t i = from; i < at_; ++i) text += source_.all[i].text;
        head.macro = text;
      }
      return true;
    }
    return false;
  }

  // Reads on to the body or the semicolon of a declaration.
  Head head() {
    Head head;
    head.line = here().line;
    while (!ended() && !sees(";") && !sees("}")) {
      if (left_out(head)) continue;
      if (sees("{")) {
        if (!is_initialiser(head)) break;
        group();
        continue;
      }
      if (sees("operator")) {  // whose name may be () or <
        do head.tokens.push_back(source_.all[at_++]);
        while (!sees("("));
        if (sees("(") && sees(")", 1) && source_.all[at_ - 1].is("operator")) at_ += 2;
        continue;
      }
      if (sees("(")) {
        if (!head.has_parameters && !head.has_value) {
          head.has_parameters = true;
          head.before = head.tokens.size();
        }
        group(head.has_value);
        continue;
      }
      if (sees("<") && !head.tokens.empty() && head.tokens.back().kind == Token::word &&
          !head.has_value) {
        angles();
        continue;
      }
      if (sees("=")) head.has_value = true;
      head.tokens.push_back(here());
      ++at_;
    }
    return head;
  }

  // Whether the brace that comes begins a value: `= {`, `int x{`, and in a constructor's list
  // `member_{`.
  bool is_initialiser(const Head& head) const {
    if (head.begins("class") || head.begins("struct") || head.begins("union") ||
        head.begins("enum") || head.begins("namespace") || head.begins("extern") ||
        head.begins("typedef") || head.names("namespace"))
      return false;
    if (head.tokens.empty()) return false;
    if (!head.has_parameters) return true;
    if (head.has_value) return true;
    if (!head.names(":")) return false;
    const Token& last = source_.all[at_ - 1];
    return last.kind == Token::word || last.is(">");
  }

  void declaration(Class* owner) {
    const Head head = this->head();
    if (ended()) return;
    if (sees("}")) return;  // of a macro without a semicolon
    if (sees(";")) {
      if (owner) add_members(*owner, head);
      ++at_;
      return;
    }
    ++at_;  // the opening brace
    if (head.begins("namespace") || head.names("namespace") ||
        (head.tokens.empty() && head.macro.empty()) ||
        (head.begins("extern") && !head.has_parameters)) {
      scope(nullptr);
      close(head.line);
    } else if (!head.has_parameters && (head.begins("class") || head.begins("struct") ||
                                        head.begins("union") || head.begins("typedef"))) {
      read_class(head);
    } else if (!head.has_parameters && head.names("enum")) {
      --at_;
      group();
    } else {
      read_function(head);
    }
  }

  void close(int line) {
    if (!sees("}")) unmatched(line);
    ++at_;
  }

  void read_class(const Head& head) {
    Class made;
    made.line = head.line;
    for (const Token& t : head.tokens) {
      if (t.is(":")) break;
      if (t.kind == Token::word && !t.is("final") && !t.is("typedef")) made.name = t.text;
    }
    for (int line = head.line - 1; source_.comments.contains(line); --line)
      made.comment = source_.comments.at(line) + "\n" + made.comment;
    scope(&made);
    close(head.line);
    outline_.classes.push_back(std::move(made));
  }

  void read_function(const Head& head) {
    Function made{head.macro, head.line, 0};
    if (made.name.empty())
      for (std::size_t i = 0; i < head.before; ++i)
        made.name += (i > 0 ? " " : "") + head.tokens[i].text;
    --at_;
    group(true);
    made.last_line = source_.all[at_ - 1].line;
    outline_.functions.push_back(std::move(made));
  }

  // `int a, *b = 0;` adds a and b; declarations of anything else add nothing, nor do pointers to
  // functions.
  static void add_members(Class& owner, const Head& head) {
    static const std::set<std::string> others{"using",         "typedef", "friend",  "static",
                                              "static_assert", "class",   "struct",  "union",
                                              "enum",          "public",  "operator"};
    if (head.tokens.empty() || head.has_parameters || head.names("static") ||
        head.names("operator") || head.names("friend"))
      return;
    if (others.contains(head.tokens.front().text) &&
        (head.tokens.size() < 3 || head.tokens.front().is("using") ||
         head.tokens.front().is("static_assert")))
      return;
    std::vector<std::string> names{""};
    bool value = false;
    for (const Token& t : head.tokens) {
      if (t.is(",")) {
        names.emplace_back();
        value = false;
      } else if (t.is("=") || t.is(":") || t.is("[")) {
        value = true;
      } else if (!value && t.kind == Token::word) {
        names.back() = t.text;
      }
    }
    owner.data.insert(owner.data.end(), names.begin(), names.end());
  }

  Tokens source_;
  std::size_t at_ = 0;
  Outline outline_;
};

}  // namespace

Outline outline_of(const std::vector<std::string>& lines) { return Reader(lines).read(); }

}  // namespace house
