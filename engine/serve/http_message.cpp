#include "engine/serve/http_message.h"

#include <algorithm>
#include <cctype>

namespace heddle::engine {
namespace {

bool is_same_name(std::string_view a, std::string_view b) {
  const auto low = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, low, low);
}

}  // namespace

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
      headers, [&](const auto& header) { return is_same_name(header.first, name); });
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
