// The page of our own: it is part of the program, so that there is one where no front end is.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/serve/embedded_file.h"
#include "engine/serve/served_files.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

// Nothing of other sites is loaded or asked, no code stands in the page itself, and no other page
// may hold this one in a frame. "blob:" is what a preview becomes that came over the WebSocket.
constexpr const char* kContentSecurityPolicy =
    "default-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'";

bool is_text(std::string_view type) {
  return type.starts_with("text/") || type == "image/svg+xml" || type == "application/json";
}

// Of an If-None-Match: "*", or a list in which a tag may be said to be weak.
bool names_tag(const std::string* header, std::string_view etag) {
  return header != nullptr && (*header == "*" || header->find(etag) != std::string::npos);
}

HttpResponse page_file(const Call& call, std::string_view name) {
  const auto files = page_files();
  const auto file = std::ranges::find(files, name, &EmbeddedFile::name);
  if (file == files.end()) throw Refused{text_response("404: Not Found", 404)};
  HttpResponse response;
  response.set("ETag", std::string(file->etag)).set("Cache-Control", "no-cache");
  response.set("Content-Security-Policy", kContentSecurityPolicy);
  response.set("X-Content-Type-Options", "nosniff").set("Referrer-Policy", "no-referrer");
  if (names_tag(call.request.header("If-None-Match"), file->etag)) {
    response.status = 304;
    return response;
  }
  const std::string_view type = content_type(std::filesystem::path(name));
  response.set("Content-Type", cat(type, is_text(type) ? "; charset=utf-8" : ""));
  response.body = file->content;
  return response;
}

}  // namespace

void add_page_routes(Router& router, const ServiceParts& parts) {
  const auto index = [](const Call& call) { return page_file(call, "index.html"); };
  router.add("GET", "/heddle", index);
  router.add("GET", "/heddle/{file}",
             [](const Call& call) { return page_file(call, call.part("file")); });
  if (!parts.options.front_end.is_served()) router.add("GET", "/", index);
}

}  // namespace heddle::engine
