// HTTP requests for the bytes of a file, and of an API, by libcurl, which is opened when it is
// first used. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace heddle::cli {

struct HttpRequest {
  std::string url;
  std::uint64_t from = 0;  // the first byte wanted
  std::string validator;   // of the file that begins with what is there: HttpAnswer::validator
  std::string token;       // for "Authorization: Bearer"; empty: none
};

struct HttpAnswer {
  long status = 0;
  std::uint64_t from = 0;   // where the bytes that come begin in the file
  std::uint64_t total = 0;  // bytes of the whole file; 0: the server does not say
  std::string validator;    // what tells this content from a later one; empty: nothing does
};

// False where heddle was built without libcurl's headers; then http_get() throws.
bool can_fetch();

// Follows redirections, never from https to http. `begin` is called once, before the bytes of a
// status 200 or 206; of others none come. What the callbacks throw ends the request and comes out
// of here. Throws Error: unsupported without libcurl, invalid_argument for an address of another
// kind, io for what goes wrong on the way; what came until then has been given to `bytes`.
HttpAnswer http_get(const HttpRequest& request, const std::function<void(const HttpAnswer&)>& begin,
                    const std::function<void(std::string_view)>& bytes);

// A request to an API.
struct HttpCall {
  std::string method, url;
  std::string body;   // empty: none
  std::string token;  // for "Authorization: Bearer"; empty: none
  // The bytes of an answer of status 200 as they come, instead of HttpReply::body: of one without
  // an end. False: no more of it is wanted. Empty: all of it is kept.
  std::function<bool(std::string_view)> bytes;
  std::string content_type = "application/json";  // of the body
};

struct HttpReply {
  long status = 0;
  std::string body;
};

// Follows no redirection. Throws as http_get().
HttpReply http_call(const HttpCall& call);

}  // namespace heddle::cli
