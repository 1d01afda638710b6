// The one exception of the tokenizer library: a file or a text that cannot be used. The message has
// the three parts of every error in this house (where, what with its values, what to do), so that
// callers only pass it on. Thrown by the loaders and, for patterns that explode, by encode(); never
// caught inside the library. Any thread.
#pragma once

#include <stdexcept>
#include <string>

namespace heddle::text {

class TextError : public std::runtime_error {
 public:
  explicit TextError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace heddle::text
