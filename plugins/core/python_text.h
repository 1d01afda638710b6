// Values as Python writes them, because that is what people know from ComfyUI. Pure; any thread.
#pragma once

#include <heddle/node.hpp>
#include <string>

namespace heddle::loaders {

// The fewest digits that read back as the same number: "0.1", "1e+16", "5.0".
std::string python_float(double number);

// str(value). What Python has no counterpart for is named by its type.
std::string python_str(const Value& value);

// repr(value): texts in quotes. ascii: ascii(value), with escapes for all but ASCII.
std::string python_repr(const Value& value, bool ascii = false);

// bool(value): false for none, false, 0, "" and empty lists and records.
bool python_bool(const Value& value);

}  // namespace heddle::loaders
