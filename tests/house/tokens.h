// The tokens of a C++ source, as far as its outline needs them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace house {

struct Token {
  enum Kind { word, literal, sign };
  Kind kind = sign;
  std::string text;  // of a literal: empty
  int line = 0;      // from 1
  bool is(const char* what) const { return text == what; }
};

struct Tokens {
  std::vector<Token> all;  // without comments and without lines of the preprocessor
  // By line: what stands in lines that begin with a comment, without the signs that open it.
  std::map<int, std::string> comments;
};

Tokens tokens_of(const std::vector<std::string>& lines);

}  // namespace house
