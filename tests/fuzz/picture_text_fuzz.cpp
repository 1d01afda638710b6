// libFuzzer target: any bytes are a picture that a workflow is taken from. Faults are errors that
// say so; what is found is no larger than it may be.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "engine/base/error.h"
#include "engine/files/picture_text.h"

using namespace heddle::engine;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto text = workflow_in_picture({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (text && (text->empty() || text->size() > (std::size_t{65} << 20))) std::abort();
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) std::abort();
  }
  return 0;
}
