// Brings the character classes of a pattern to the Unicode version of the `tokenizers` package.
// Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace heddle::text {

// `pattern` (Oniguruma syntax) with \p{..} and \P{..} of the general categories L, M, N, P, S and
// their parts, \w, \W, \d and \D widened by the characters of unicode_versions.h.
std::string widened_pattern(std::string_view pattern);

// A bracket expression for one word character as Rust's `regex` defines it (Unicode TR 18, annex
// C).
std::string word_class();

}  // namespace heddle::text
