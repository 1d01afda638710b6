// Requests and responses as those see them who answer: without a word of the library that carries
// them. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/descriptor.h"
#include "engine/base/json.h"

namespace heddle::engine {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // as it was sent, percent-encoded: "/userdata/a%2Fb"
  std::string query;   // the same, without the "?"
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string peer;  // its address

  // Of the first header of this name, in any case; nullptr: there is none.
  const std::string* header(std::string_view name) const;
};

// A part of an open file.
struct FileSlice {
  std::shared_ptr<FileDescriptor> file;
  std::uint64_t offset = 0, bytes = 0;
};

struct HttpResponse {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::optional<FileSlice> file;  // instead of `body`

  HttpResponse& set(std::string name, std::string value);
};

HttpResponse json_response(const Json& json, unsigned status = 200);
HttpResponse json_response(std::string text, unsigned status = 200);  // that is JSON already
HttpResponse text_response(std::string text, unsigned status = 200);

}  // namespace heddle::engine
