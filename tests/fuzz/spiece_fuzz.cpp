// libFuzzer: any bytes as a spiece.model give a tokenizer or a TextError. A tokenizer then has to
// encode.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plugins/encoders/tokenizer/spiece.h"
#include "plugins/encoders/tokenizer/text_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = heddle::text::read_spiece(bytes, "spiece.model");
    const auto limit = static_cast<std::int32_t>(tokenizer.id_count());
    for (const std::string& text :
         {std::string("  A light\xCC\x81house, 3 \xE7\x81\xAF \xFF"), std::string(bytes)}) {
      for (const std::int32_t id : tokenizer.encode(text)) {
        if (id < 0 || id >= limit) std::abort();
      }
    }
  } catch (const heddle::text::TextError&) {
  }
  return 0;
}
