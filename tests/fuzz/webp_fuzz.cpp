// libFuzzer target: WebP files (tests/fuzz/pictures.h says what holds).
// Build: clang++ -fsanitize=fuzzer,address,undefined.
#include "plugins/image/webp.h"
#include "tests/fuzz/pictures.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return heddle::fuzz::try_picture(&heddle::image::read_webp, data, size);
}
