// Bodies in gzip and deflate (RFC 9110, section 8.4.1): those of requests are inflated under a
// limit, answers are compressed for whoever accepts it. Messages of WebSockets. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/serve/http_message.h"

namespace heddle::engine {

struct Inflated {
  enum class Outcome { done, too_large, broken, busy } outcome = Outcome::broken;
  std::string content;  // done
};
// gzip (of several members, too) or zlib. Never holds more than `limit` bytes and one piece.
// `claim` is asked for the bytes of every piece before it is kept; false: busy.
Inflated inflated(std::string_view compressed, std::uint64_t limit,
                  const std::function<bool(std::uint64_t)>& claim = {});
std::string gzipped(std::string_view content);
// As a message of a WebSocket (RFC 7692, section 7.2.1): without a header, its last bytes 00 00 FF
// FF left out. `window_bits`: 9 to 15.
std::string deflated_message(std::string_view content, int window_bits);

// Whether a request's Accept-Encoding takes gzip: "gzip", "br;q=1, *;q=0.5", not "gzip;q=0".
bool accepts_gzip(std::string_view accept_encoding);

// Inflates the body of a request with a Content-Encoding, which goes. The refusal, where that is
// unknown (415), or the body is broken (400) or larger than `limit` (413), or too much
// comes at once (503).
std::optional<HttpResponse> inflate_body(HttpRequest& request, std::uint64_t limit);

// Compresses the body of an answer where that is worth it and the request accepts it: no parts of
// files, nothing small, nothing that is compressed by its type.
void compress_body(const HttpRequest& request, HttpResponse& response);

}  // namespace heddle::engine
