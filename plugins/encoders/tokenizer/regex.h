// A compiled regular expression over UTF-8, in the syntax and with the meaning that the
// `tokenizers` package gives to the patterns of a tokenizer.json. The only door to Oniguruma.
// Immutable, so any thread may search; a search that needs more than its share of backtracking
// fails with TextError instead of hanging.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

  // All matches, from left to right, not overlapping; an empty match is not accepted right after
  // another match. REQUIRES: valid UTF-8. Throws TextError when the pattern backtracks too much.
  std::vector<Span> find_all(std::string_view text) const;

 private:
  struct Compiled;
  Regex(std::shared_ptr<const Compiled> compiled, std::string where);

  std::shared_ptr<const Compiled> compiled_;
  std::string where_;
};

}  // namespace heddle::text
