// libFuzzer target: whatever the bytes, parse_json() returns or throws Error; what it returns can
// be written, and reads back as what was written. Build: clang++
// -fsanitize=fuzzer,address,undefined.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/json.h"

using namespace heddle::engine;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void check_places(const Json& json) {
  require(json.line() > 0 && json.column() > 0, "every value that was read has a place");
  if (json.is_array()) {
    for (const Json& element : json.as_array()) check_places(element);
  }
  if (json.is_object()) {
    for (const Json::Member& member : json.members()) {
      require(json.find(member.key) == &member.value, "find() finds every member");
      check_places(member.value);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Json json;
  try {
    json = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz:"), "an error starts with the name");
    return 0;
  }
  check_places(json);
  const std::string text = write_json(json);
  const Json again = parse_json(text, "written");
  require(write_json(again) == text, "written text reads back as the same value");
  require(write_json(parse_json(write_json(json, 2), "indented")) == text,
          "indentation changes no value");
  const Json copy = json;
  require(write_json(copy) == text, "a copy is the same value");
  return 0;
}
