// libFuzzer target: whatever the bytes, read_form() gives parts that lie in the body, or nothing;
// and parts that were read are read again from a form that is written of them. The first line is
// the Content-Type, all behind it the body. Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <functional>

#include "engine/base/text.h"
#include "engine/serve/multipart.h"
#include "tests/fuzz/served.h"

using namespace heddle::engine;
using heddle::test::require;

namespace {

// As RFC 7578 has it, with the backslashes of clients. Nothing for what it has no form for.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

bool fits_a_header(std::string_view text) { return text.find("\r\n") == text.npos; }

void check_again(const std::vector<FormPart>& parts) {
  const std::string boundary = "a-boundary-that-nobody-else-has";
  std::string body;
  for (const FormPart& part : parts) {
    if (part.content.find(boundary) != part.content.npos) return;
    if (!fits_a_header(part.name) || !fits_a_header(part.file_name)) return;
    body += cat("--", boundary, "\r\nContent-Disposition: form-data; name=", quoted(part.name),
                "; filename=", quoted(part.file_name), "\r\n\r\n", part.content, "\r\n");
  }
  body += cat("--", boundary, "--\r\n");
  const auto again = read_form(cat("multipart/form-data; boundary=", boundary), body);
  require(again.has_value() && again->size() == parts.size(), "what was read can be written");
  for (std::size_t i = 0; i < parts.size(); ++i)
    require((*again)[i].name == parts[i].name && (*again)[i].file_name == parts[i].file_name &&
                (*again)[i].content == parts[i].content,
            "what was written reads back as the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string_view body = input.substr(std::min(line + 1, input.size()));
  const auto parts = read_form(input.substr(0, line), body);
  if (!parts) return 0;
  const std::less_equal<const char*> before;
  for (const FormPart& part : *parts) {
    require(before(body.data(), part.content.data()) &&
                before(part.content.data() + part.content.size(), body.data() + body.size()),
            "a part lies in the body");
    require(find_part(*parts, part.name) != nullptr, "a part is found by its name");
  }
  check_again(*parts);
  return 0;
}
