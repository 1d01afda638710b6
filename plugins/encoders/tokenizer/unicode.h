// Unicode facts: normal forms, lower case, character classes, grapheme clusters. The only door to
// utf8proc. Results are those of the `tokenizers` package, which mixes several versions of the
// Unicode tables; where the installed utf8proc knows more or fewer characters, unicode_versions.h
// has the difference. Inputs are valid UTF-8 and all functions run in O(n log n) at most, also on
// long runs of combining marks. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::string normal_form(std::string_view text, NormalForm form);

// Every character by itself (no final-sigma rule), full mappings, no locale.
std::string lower_case(std::string_view text);

bool is_white_space(char32_t c);  // White_Space property
bool is_number(char32_t c);       // general category N

// The byte after the extended grapheme cluster that starts at byte `at`. REQUIRES: at <
// text.size().
std::size_t grapheme_end(std::string_view text, std::size_t at);

}  // namespace heddle::text
