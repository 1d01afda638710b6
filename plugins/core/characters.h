// Texts as Python sees them: by characters (code points) instead of bytes. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::loaders {

using Character = char32_t;

// Of UTF-8; bytes that are none stand for U+FFFD each.
std::vector<Character> characters_of(std::string_view text);
std::string text_of_characters(const Character* begin, const Character* end);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
// The first letter of each word is a capital; `first_only`: of the text.
std::string titled(std::string_view text, bool first_only);

// text[start:end].
std::string slice_of(std::string_view text, std::int64_t start, std::int64_t end);

// An empty `find` is found before every character and at the end.
std::string replaced(const std::string& text, const std::string& find, const std::string& by);

// Without the white space at its ends.
std::string stripped(std::string_view text, bool left = true, bool right = true);

}  // namespace heddle::loaders
