// Numbers and text as Python reads and writes them, because that is what workflows were written
// against: "12" is a good INT, 5.0 given to a text input becomes "5.0", true becomes "True". Pure;
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/base/json.h"

namespace heddle::engine {

// str(value): text as it is, 5.0 -> "5.0", 1e16 -> "1e+16", true -> "True", null -> "None", lists
// and objects as Python shows them. Characters above U+00FF count as printable.
std::string python_text(const Json& value);

// bool(value): null, false, 0, "", [] and {} are false.
bool python_truth(const Json& value);

// An integer of 64 bits, signed or not.
using WholeNumber = std::variant<std::int64_t, std::uint64_t>;

// int(text) and float(text): white space around, a sign and single underscores between digits are
// allowed; float() knows "inf", "infinity" and "nan". Nothing for anything else, and for an integer
// outside of 64 bits.
std::optional<WholeNumber> python_integer(std::string_view text);
std::optional<double> python_float(std::string_view text);

// int(number): cuts the fraction off. Nothing for NaN, infinities and what does not fit into 64
// bits.
std::optional<WholeNumber> truncated(double number);

}  // namespace heddle::engine
