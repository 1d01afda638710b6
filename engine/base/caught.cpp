#include "engine/base/caught.h"

#include <exception>
#include <new>

namespace heddle::engine {

namespace {

// Made before memory can be out; a copy without a trail takes none.
const Error kNoMemory(Code::out_of_memory, "host memory is exhausted");

}  // namespace

Error caught_error() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  } catch (const Error& error) {
    try {
      return error;
    } catch (...) {
      return kNoMemory;
    }
  } catch (const std::exception& error) {
    try {
      return Error(Code::internal, error.what());
    } catch (...) {
      return kNoMemory;
    }
  } catch (...) {
    try {
      return Error(Code::internal, "something was thrown that is no std::exception");
    } catch (...) {
      return kNoMemory;
    }
  }
}

Error for_another_thread(const Error& error) {
  Error copy(error.code(), std::string(error.what()));
  for (auto frame = error.trail().rbegin(); frame != error.trail().rend(); ++frame) copy.at(*frame);
  return copy;
}

}  // namespace heddle::engine
