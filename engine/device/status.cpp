#include "engine/device/status.h"

#include <new>

namespace heddle::engine {

namespace {

heddle_status* out_of_memory() noexcept {
  static heddle_status status{Error(Code::out_of_memory, "host memory is exhausted"), true};
  return &status;
}

// Made while there is memory: its text takes some.
[[maybe_unused]] const heddle_status* const made_early = out_of_memory();

}  // namespace

heddle_status* make_status(const Error& error) noexcept {
  try {
    return new heddle_status{error};
  } catch (...) {
    return out_of_memory();
  }
}

heddle_status* make_status(heddle_code code, const char* message) noexcept {
  try {
    const bool known = code >= HEDDLE_INVALID_ARGUMENT && code <= HEDDLE_INTERNAL;
    return new heddle_status{Error(known ? Code(code) : Code::internal,
                                   message == nullptr ? "no reason was given" : message)};
  } catch (...) {
    return out_of_memory();
  }
}

Error take_status(heddle_status* status) {
  Error error = status->error;
  free_status(status);
  return error;
}

void free_status(heddle_status* status) noexcept {
  if (status != nullptr && !status->is_static) delete status;
}

}  // namespace heddle::engine
