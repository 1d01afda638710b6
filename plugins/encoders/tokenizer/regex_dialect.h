// Patterns as Oniguruma shall have them: with the character classes of the Unicode version that the
// `tokenizers` package has, and without steps back to remember that nobody will take. Pure
// functions.
#pragma once

#include <string>
#include <string_view>

namespace heddle::text {

// `pattern` (Oniguruma syntax) with \p{..} and \P{..} of the general categories L, M, N, P, S and
// their parts, \w, \W, \d and \D widened by the characters of unicode_versions.h.
std::string widened_pattern(std::string_view pattern);

// `pattern` with possessive quantifiers where an alternative of the whole pattern ends with one of
// a class of characters: \p{L}+|... Nothing follows that could fail, so it matches the same; but
// Oniguruma keeps 40 bytes for each character of a loop that it may step back from.
std::string possessive_pattern(std::string_view pattern);

// A bracket expression for one word character as Rust's `regex` defines it (Unicode TR 18, annex
// C).
std::string word_class();

}  // namespace heddle::text
