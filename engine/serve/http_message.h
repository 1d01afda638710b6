// Requests and responses as those see them who answer: without a word of the library that carries
// them. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/descriptor.h"
#include "engine/base/json.h"
#include "engine/serve/caller.h"

namespace heddle::engine {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // as it was sent, percent-encoded: "/userdata/a%2Fb"
  std::string query;   // the same, without the "?"
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string peer;  // its address; "unix": of a Unix socket
  bool is_encrypted = false;
  // Counts so many bytes more in the limit of all bodies, of what was sent compressed; false: there
  // is no room. Empty: nobody counts.
  std::function<bool(std::uint64_t)> claim;
  // What ServerHandlers::check has found.
  Caller caller;
  std::string id;      // by which it is known in the log
  std::string prefix;  // that was before its path: "/studio"
  std::chrono::steady_clock::time_point begun = {};

  // Of the first header of this name, in any case; nullptr: there is none.
  const std::string* header(std::string_view name) const;
};

bool is_same_header(std::string_view a, std::string_view b);  // in any case
// The request's X-Request-Id where it is a sound one (letters, digits, "-", "_" and ".", 128 at
// most); else a new one.
std::string request_id_of(const HttpRequest& request);

// A part of an open file.
struct FileSlice {
  std::shared_ptr<FileDescriptor> file;
  std::uint64_t offset = 0, bytes = 0;
};

// The body of an answer, piece by piece, for as long as somebody reads it. Any thread; pieces go
// out in the order of the calls. All of them go before the server does.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // False: nobody reads any more.
  virtual bool send(std::string piece) = 0;
  virtual void close() = 0;          // behind all that was sent
  virtual bool is_read() const = 0;  // false: nobody does any more
};

// A body that comes by and by: it ends with its connection.
struct StreamedBody {
  // Called once, on one of the answering threads.
  std::function<void(const std::shared_ptr<HttpStream>&)> begin;
  std::string heartbeat;  // sent when nothing else was for ServerLimits::stream_idle_ms
  // To a reader for whom more than ServerLimits::stream_backlog_bytes wait: instead of them, and
  // the last that it gets.
  std::string farewell;
  // Called once, on one of the answering threads, where whoever reads has gone before the end; not
  // where the server ends. Empty: nobody wants to know.
  std::function<void()> gone = {};
};

struct HttpResponse {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::optional<FileSlice> file = {};       // instead of `body`
  std::optional<StreamedBody> stream = {};  // the same

  HttpResponse& set(std::string name, std::string value);
};

HttpResponse json_response(const Json& json, unsigned status = 200);
HttpResponse json_response(std::string text, unsigned status = 200);  // that is JSON already
HttpResponse text_response(std::string text, unsigned status = 200);

}  // namespace heddle::engine
