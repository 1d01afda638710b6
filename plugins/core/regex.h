// Regular expressions as Python's module `re` has them, by Oniguruma with its syntax of Python. A
// pattern is immutable and may be used on any thread; a search belongs to one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::loaders {

struct RegexOptions {
  bool ignores_case = false;
  bool by_line = false;          // ^ and $ match at line feeds, too
  bool dot_takes_lines = false;  // . matches a line feed, too
};

class Regex {
 public:
  // Nothing where the pattern cannot be read; then `why` says why.
  static std::optional<Regex> read(std::string_view pattern, const RegexOptions& options,
                                   std::string* why = nullptr);

  std::size_t groups() const;
  // 0: there is no group of that name.
  std::size_t group_named(std::string_view name) const;

 private:
  friend class RegexSearch;
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// The matches in a text from left to right, as re.finditer() goes. Borrows both.
class RegexSearch {
 public:
  RegexSearch(const Regex& regex, std::string_view text);
  ~RegexSearch();

  // Goes to the next match. Throws HEDDLE_INVALID_ARGUMENT when the pattern backtracks too much.
  bool next();
  // Of the match; 0 is all of it. Nothing for a group that took no part.
  std::optional<std::string_view> group(std::size_t which) const;
  std::size_t begin() const;
  std::size_t end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// re.sub(): at most `most` matches are replaced, 0: all. `pattern` may have \1, \g<name> and the
// escapes of Python; throws HEDDLE_INVALID_ARGUMENT for others.
std::string regex_replaced(const Regex& regex, const std::string& text, std::string_view pattern,
                           std::size_t most);

}  // namespace heddle::loaders
