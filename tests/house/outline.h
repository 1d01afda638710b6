// What a C++ source defines, read from its text alone: how long its functions are, and which data
// its classes have.
#pragma once

#include <string>
#include <vector>

namespace house {

struct Function {
  std::string name;  // the tokens before its parameters, or of a macro such as BOOST_AUTO_TEST_CASE
                     // also those within
  int first_line = 0, last_line = 0;  // from its return type to its closing brace
  int lines() const { return last_line - first_line + 1; }
};

struct Class {
  std::string name;
  int line = 0;                   // of its first token
  std::vector<std::string> data;  // non-static data members; pointers to functions are not among
                                  // them: a table of those is an interface
  std::string comment;            // the lines of comment directly before it, without the slashes
};

struct Outline {
  std::vector<Function> functions;
  std::vector<Class> classes;
};

// Nothing is preprocessed: of an #if with an #else, both are read. Throws std::runtime_error with
// the line where braces do not match.
Outline outline_of(const std::vector<std::string>& lines);

}  // namespace house
