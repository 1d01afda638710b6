// What keys and sessions are made of and held against. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::engine {

// Of the system's source for keys. Throws Error(io) where it gives nothing.
std::string random_hex(std::size_t characters);

// How long it takes says nothing of where the difference is.
bool is_equal_secret(std::string_view a, std::string_view b);

// 64 lower-case digits: what `sha256sum` prints. Throws Error(unsupported) without OpenSSL.
std::string sha256_hex(std::string_view text);
bool has_sha256();  // whether heddle was built with it

}  // namespace heddle::engine
