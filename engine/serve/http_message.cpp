#include "engine/serve/http_message.h"

#include <algorithm>
#include <cctype>

#include "engine/queue/job_queue.h"

namespace heddle::engine {
bool is_same_header(std::string_view a, std::string_view b) {
  const auto low = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, low, low);
}

std::string request_id_of(const HttpRequest& request) {
  const std::string* given = request.header("X-Request-Id");
  const bool is_sound = given != nullptr && !given->empty() && given->size() <= 128 &&
                        std::ranges::all_of(*given, [](unsigned char c) {
                          return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                        });
  return is_sound ? *given : make_job_id();
}

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
      headers, [&](const auto& header) { return is_same_header(header.first, name); });
  return found == headers.end() ? nullptr : &found->second;
}

HttpResponse& HttpResponse::set(std::string name, std::string value) {
  headers.emplace_back(std::move(name), std::move(value));
  return *this;
}

HttpResponse json_response(std::string text, unsigned status) {
  HttpResponse response{status, {}, std::move(text), {}};
  return std::move(response.set("Content-Type", "application/json; charset=utf-8"));
}

HttpResponse json_response(const Json& json, unsigned status) {
  return json_response(write_json(json), status);
}

HttpResponse text_response(std::string text, unsigned status) {
  HttpResponse response{status, {}, std::move(text), {}};
  return std::move(response.set("Content-Type", "text/plain; charset=utf-8"));
}

}  // namespace heddle::engine
