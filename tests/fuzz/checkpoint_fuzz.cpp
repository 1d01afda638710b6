// libFuzzer target: whatever the bytes, parse_checkpoint() returns or throws Error, and so do the
// workflow and the node outputs that stand in it as JSON, when `heddle resume` reads them; what it
// returns is written and reads back as what was written. A checksum would hide the reader from
// whoever changes a byte, so inputs are signed here. Two kinds, told apart by the first byte:
//
//   anything else   a whole file
//   '['             the values alone, as JSON (engine/files/value_file.h); there are three tensors
//
// Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/graph/workflow.h"
#include "engine/run/checkpoint_file.h"

using namespace heddle::engine;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// As write_values() does: the hash of the file with zeros in the place of the hash.
std::string signed_file(std::string file) {
  constexpr std::string_view kKey = "\"heddle.checksum\":\"";
  constexpr std::size_t kDigits = 32;
  const std::size_t place = file.find(kKey);
  if (place == std::string::npos || file.size() - place < kKey.size() + kDigits) return file;
  file.replace(place + kKey.size(), kDigits, std::string(kDigits, '0'));
  const std::string checksum = hex(hash_bytes(bytes_of(file)));
  file.replace(place + kKey.size(), kDigits, checksum);
  return file;
}

// A file of three tensors whose values are this text.
std::string file_of(std::string_view values) {
  Json header = Json::object();
  header.set("__metadata__", std::move(Json::object()
                                           .set("heddle.name", "heddle checkpoint 1")
                                           .set("heddle.values", values)
                                           .set("heddle.checksum", std::string(32, '0'))));
  const auto tensor = [&](const char* name, const char* dtype, std::initializer_list<int> shape,
                          int begin, int end) {
    Json lengths = Json::array(), offsets = Json::array();
    for (const int length : shape) lengths.push(length);
    offsets.push(begin).push(end);
    header.set(name, std::move(Json::object()
                                   .set("dtype", dtype)
                                   .set("shape", std::move(lengths))
                                   .set("data_offsets", std::move(offsets))));
  };
  tensor("0", "F32", {1, 2}, 0, 8);
  tensor("1", "BF16", {}, 8, 10);
  tensor("2", "U8", {0}, 10, 10);
  const std::string text = write_json(header);
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = char(std::uint64_t(text.size()) >> (8 * i));
  return signed_file(file + text + std::string(10, 'x'));
}

template <class Read>
void may_throw(Read&& read) {
  try {
    read();
  } catch (const Error&) {
    // Refused, with a reason.
  }
}

void check(const CheckpointContent& content) {
  std::string written;
  try {
    written = checkpoint_text(content);
  } catch (const Error&) {
    require(false, "what was read can be written");
  }
  const CheckpointContent again = parse_checkpoint(bytes_of(written), "written");
  require(checkpoint_text(again) == written, "what was written reads back as the same");
  require(again.saved.is_empty() == content.saved.is_empty(), "nothing is lost");
  may_throw([&] { parse_workflow(content.workflow, "workflow"); });
  for (const auto& [node, ui] : content.ui) may_throw([&, &ui = ui] { parse_json(ui, "ui"); });
  may_throw([&] { check_builds(content, {{"heddle", "0.1.0"}}); });
}

void read(const std::string& file) {
  CheckpointContent content;
  try {
    content = parse_checkpoint(bytes_of(file), "fuzz");
  } catch (const Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz"),
            "an error starts with the file's name");
    return;
  }
  check(content);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('[')) {
    read(file_of(input));
  } else {
    read(input);
    read(signed_file(input));
  }
  return 0;
}
