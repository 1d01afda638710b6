// The numeric core throws std::invalid_argument at arguments it cannot serve, naming the value;
// here it becomes an error of the node, which is the user's to mend. Pure; any thread.
#pragma once

#include <stdexcept>
#include <utility>

#include <heddle/plugin.hpp>

namespace heddle::samplers {

template <class F>
auto with_user_errors(F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const std::invalid_argument& error) {
    throw Error(HEDDLE_INVALID_ARGUMENT, error.what());
  }
}

}  // namespace heddle::samplers
