#include "chosen_things.h"

#include <algorithm>

namespace heddle::detection {

std::vector<std::int64_t> chosen_things(const std::string& text, std::int64_t count) {
  constexpr const char* kBlank = " \t\r\n\v\f";
  constexpr std::size_t kMostDigits = 9;
  std::vector<std::int64_t> things;
  if (text.find_first_not_of(kBlank) == std::string::npos) {
    for (std::int64_t i = 0; i < count; ++i) things.push_back(i);
    return things;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t first = std::min(text.find_first_not_of(kBlank, begin), end);
    std::size_t last = end;
    while (last > first && std::string(kBlank).find(text[last - 1]) != std::string::npos) --last;
    const std::string word = text.substr(first, last - first);
    const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    if (const std::size_t zeros = std::min(word.find_first_not_of('0'), word.size());
        is_number && word.size() - zeros <= kMostDigits)
      if (const std::int64_t thing = std::stoll(word); thing < count) things.push_back(thing);
    begin = end + 1;
  }
  return things;
}

}  // namespace heddle::detection
