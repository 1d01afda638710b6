// format(value, spec) and str.format() of Python, for the kinds of values that workflows hold.
// Pure; any thread. Errors are HEDDLE_INVALID_ARGUMENT with what Python refuses, too.
#pragma once

#include <functional>
#include <heddle/node.hpp>
#include <string>

namespace heddle::loaders {

// https://docs.python.org/3/library/string.html#format-specification-mini-language
std::string python_format(const Value& value, const std::string& spec);

// A template such as "{a:>8} {b[0]!r}". `named` gives the value of a name, or throws.
std::string python_format_text(std::string_view pattern,
                               const std::function<Value(const std::string&)>& named);

}  // namespace heddle::loaders
