#include "plugins/blocks/pixel_limit.h"

#include <charconv>
#include <cstdlib>
#include <heddle/plugin.hpp>
#include <string>
#include <string_view>

namespace heddle::blocks {

std::uint64_t most_pixels() {
  const char* text = std::getenv("HEDDLE_MOST_PIXELS");
  if (text == nullptr || *text == '\0') return kMostPixels;
  const std::string_view digits(text);
  constexpr std::uint64_t kMost = 1ull << 40;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number == 0 || number > kMost)
    throw Error(HEDDLE_INVALID_ARGUMENT, "HEDDLE_MOST_PIXELS is '" + std::string(digits) +
                                             "'. Give a whole number from 1 to 2^40.");
  return number;
}

}  // namespace heddle::blocks
