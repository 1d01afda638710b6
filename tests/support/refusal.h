// Runs something that has to fail and hands the error to the test. Returns an error with code 0 and
// the message "nothing was thrown" when it succeeds, so that the comparison that follows fails and
// shows it.
#pragma once

#include <functional>

#include "engine/base/error.h"

namespace heddle::test {

inline engine::Error refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    return error;
  }
  return engine::Error(engine::Code{}, "nothing was thrown");
}

}  // namespace heddle::test
