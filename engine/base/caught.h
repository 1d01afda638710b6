// The exception under way, for threads that hand it on to whoever waits for their work: none may
// let one out, as that would end the process.
#pragma once

#include "engine/base/error.h"

namespace heddle::engine {

// To be called in a catch block. Where there is no memory to copy it, it says so.
Error caught_error() noexcept;

// The same for another thread: copies share their text, and only the C++ library knows who is the
// last to let go of it.
Error for_another_thread(const Error& error);

}  // namespace heddle::engine
