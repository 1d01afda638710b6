// Runs something that a plugin has to refuse and hands the error to the test; an error of code 0
// when nothing was thrown, so that the comparison that follows fails and shows it.
#pragma once

#include <functional>
#include <heddle/plugin.hpp>

namespace heddle::image::testing {

inline Error refused(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(0, "nothing was thrown");
}

inline bool says(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

}  // namespace heddle::image::testing
