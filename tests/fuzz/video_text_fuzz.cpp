// libFuzzer target: any bytes are a video that a workflow is taken from. Faults are errors that
// say so; what is found is no larger than it may be.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/base/error.h"
#include "engine/files/video_text.h"

using namespace heddle::engine;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // What is no video has nothing to read.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!is_video(bytes)) bytes.insert(0, "\0\0\0\10ftyp", 8);
  try {
    const auto text = workflow_in_video(bytes, "fuzz");
    if (text && (text->empty() || text->size() > bytes.size())) std::abort();
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) std::abort();
  }
  return 0;
}
