// heddle_status: the engine's Error on its way through the C ABI. NULL is success. Made and taken
// apart only here, so that every status has one allocator. Any thread.
#pragma once

#include "engine/base/error.h"
#include "heddle/abi/base.h"

struct heddle_status {
  heddle::engine::Error error;
  bool is_static = false;  // the one that says memory is out; never freed
};

namespace heddle::engine {

heddle_status* make_status(const Error& error) noexcept;
heddle_status* make_status(heddle_code code, const char* message) noexcept;

// The Error inside; the status is freed. REQUIRES: status != NULL.
Error take_status(heddle_status* status);

void free_status(heddle_status* status) noexcept;

// Runs body; what it throws becomes a status. For functions that plugins call.
template <class F>
heddle_status* to_status(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return make_status(error);
  } catch (const std::bad_alloc&) {
    return make_status(HEDDLE_OUT_OF_MEMORY, "host memory is exhausted");
  } catch (const std::exception& error) {
    return make_status(HEDDLE_INTERNAL, error.what());
  }
}

}  // namespace heddle::engine
