// Starting threads where the system may refuse one.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/error.h"

namespace heddle::engine {

// A std::jthread or std::thread. Throws Error(out_of_memory) that names `purpose` ("the thread of a
// run") and the limits to look at.
template <class Thread = std::jthread, class... Args>
Thread start_thread(std::string_view purpose, Args&&... args) {
  try {
    return Thread(std::forward<Args>(args)...);
  } catch (const std::system_error& refused) {
    throw system_error(purpose, refused.code().value());
  }
}

}  // namespace heddle::engine
