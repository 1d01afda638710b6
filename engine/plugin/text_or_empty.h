// Texts that a plugin may leave out.
#pragma once

#include <string_view>

namespace heddle::engine {

inline std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace heddle::engine
