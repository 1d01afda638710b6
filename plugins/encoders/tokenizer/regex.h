// A compiled regular expression over UTF-8, in the syntax and with the meaning that the
// `tokenizers` package gives to the patterns of a tokenizer.json. The only door to Oniguruma.
// Immutable, so any thread may search. What backtracks too much fails with TextError: the time of
// all searches in a text, and the memory of each, are at most so much a byte of it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::text {

struct Span {
  std::size_t begin = 0, end = 0;  // bytes
};

class Regex {
 public:
  // `where` names the place of the pattern in its file. Throws TextError when it does not compile.
  static Regex compile(std::string_view pattern, const std::string& where);

  // A pattern that matches `text` and nothing else.
  static Regex literal(std::string_view text, const std::string& where);

  // The matches in a text, from left to right, not overlapping; an empty match is not accepted
  // right after another match. Borrows both.
  class Matches;
  // REQUIRES: valid UTF-8.
  Matches matches(std::string_view text) const;

 private:
  struct Compiled;
  struct Search;
  Regex(std::shared_ptr<const Compiled> compiled, std::string where);

  std::shared_ptr<const Compiled> compiled_;
  std::string where_;
};

class Regex::Matches {
 public:
  Matches(Matches&&) noexcept;
  ~Matches();

  // The next one. Throws TextError when the pattern backtracks too much.
  std::optional<Span> next();

 private:
  friend class Regex;
  explicit Matches(std::unique_ptr<Search> search);

  std::unique_ptr<Search> search_;
};

}  // namespace heddle::text
