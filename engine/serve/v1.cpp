#include "engine/serve/v1.h"

#include <algorithm>
#include <charconv>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/queue/job_queue.h"
#include "heddle/engine.hpp"

namespace heddle::engine {
namespace {

// 404 is about the path alone: what an engine does not find is named in a body.
unsigned status_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return 400;
    case Code::not_found:
    case Code::unsupported:
      return 422;
    case Code::cancelled:
      return 409;
    case Code::out_of_memory:
      return 503;
    default:
      return 500;
  }
}

HttpResponse told_error(int code, const std::vector<std::string>& trail, std::string_view what) {
  Json more = Json::object();
  if (!trail.empty()) more.set("trail", json_list(trail));
  return v1_error(status_of(static_cast<Code>(code)), v1_code(code), what, more);
}

// Of what is refused elsewhere.
std::string_view code_of_status(unsigned status) {
  switch (status) {
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    case 413:
      return "too_large";
    case 429:
      return "too_many_requests";
    default:
      return status < 500 ? "invalid_argument" : "internal";
  }
}

std::optional<Json> read_object(const std::string& text) {
  try {
    if (Json json = parse_json(text, "body"); json.is_object()) return json;
  } catch (const Error&) {
  }
  return {};
}

HttpResponse with_shape(HttpResponse response) {
  const std::optional<Json> body = read_object(response.body);
  const Json* error = body ? body->find("error") : nullptr;
  if (error != nullptr && error->is_object()) return response;
  const std::string message =
      error != nullptr && error->is_string() ? error->as_string() : response.body;
  HttpResponse shaped = v1_error(response.status, code_of_status(response.status), message);
  for (const auto& [name, value] : response.headers)
    if (name != "Content-Type") shaped.set(name, value);
  return shaped;
}

[[noreturn]] void refuse_field(std::string_view name, std::string_view expected,
                               const Json& value) {
  refuse_v1(400, "invalid_argument",
            cat(quote(name), " is ", value.describe(), "; expected ", expected),
            Json(Json::object().set("where", name)));
}

}  // namespace

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json json_list(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

std::string v1_code(int code) {
  std::string name(code_name(static_cast<Code>(code)));
  std::ranges::replace(name, ' ', '_');
  return name;
}

HttpResponse v1_error(unsigned status, std::string_view code, std::string_view message,
                      const Json& more) {
  Json error = Json::object(), whole = Json::object();
  error.set("code", code).set("message", message);
  for (const Json::Member& member : more.members()) error.set(member.key, member.value);
  return json_response(whole.set("error", std::move(error)), status);
}

void refuse_v1(unsigned status, std::string_view code, std::string_view message, const Json& more) {
  throw Refused{v1_error(status, code, message, more)};
}

void add_v1(Router& router, std::string_view method, std::string_view pattern,
            Router::Route route) {
  router.add(method, pattern, [route = std::move(route)](const Call& call) {
    try {
      return route(call);
    } catch (const QueueFull& full) {
      return v1_error(503, "queue_full", full.full()).set("Retry-After", "10");
    } catch (const EngineError& error) {
      return told_error(error.code(), error.trail(), error.what());
    } catch (const Error& error) {
      return told_error(int(error.code()), error.trail(), error.what());
    }
  });
}

bool is_v1(std::string_view path) { return path == "/v1" || path.starts_with("/v1/"); }

HttpResponse as_v1(const HttpRequest& request, HttpResponse response) {
  if (response.status >= 400) response = with_shape(std::move(response));
  if (response.status == 500)
    log(Level::error, cat(request.method, " ", printable(request.path), ", request ", request.id,
                          ": ", printable(response.body)));
  const auto is_caching = [](const auto& header) { return header.first == "Cache-Control"; };
  if (std::ranges::none_of(response.headers, is_caching)) response.set("Cache-Control", "no-store");
  return response;
}

Fields::Fields(const Call& call, std::initializer_list<std::string_view> known)
    : body_(Json::object()) {
  if (!call.request.body.empty()) body_ = parse_json(call.request.body, "body");
  if (!body_.is_object())
    refuse_v1(400, "invalid_argument", cat("the body is ", body_.describe(), ", and no object"));
  for (const Json::Member& member : body_.members())
    if (std::ranges::find(known, member.key) == known.end())
      refuse_v1(400, "invalid_argument",
                cat("there is no member ", quote(member.key), ".", did_you_mean(member.key, known)),
                Json(Json::object().set("where", member.key)));
}

const Json* Fields::find(std::string_view name) const {
  const Json* value = body_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Fields::text(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return "";
  if (!value->is_string()) refuse_field(name, "a text", *value);
  return value->as_string();
}

bool Fields::flag(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_bool()) refuse_field(name, "true or false", *value);
  return value->as_bool();
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least,
                                            std::int64_t most) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  const std::string expected = cat("a whole number from ", least, " to ", most);
  if (value->kind() != Json::Kind::integer) refuse_field(name, expected, *value);
  const std::int64_t number = value->as_int64();
  if (number < least || number > most) refuse_field(name, expected, *value);
  return number;
}

std::vector<std::string> Fields::texts(std::string_view name) const {
  std::vector<std::string> texts;
  const Json* value = find(name);
  if (value == nullptr) return texts;
  if (!value->is_array()) refuse_field(name, "a list of texts", *value);
  for (const Json& text : value->as_array()) {
    if (!text.is_string()) refuse_field(name, "a list of texts", text);
    texts.push_back(text.as_string());
  }
  return texts;
}

const Json* Fields::object(std::string_view name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) refuse_field(name, "an object", *value);
  return value;
}

std::int64_t whole_number(const Query& query, std::string_view name, std::int64_t least,
                          std::int64_t most, std::int64_t otherwise) {
  const std::string* text = query.find(name);
  if (text == nullptr) return otherwise;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < least || number > most)
    refuse_v1(400, "invalid_argument",
              cat(quote(name), " is ", quote(*text), "; expected a whole number from ", least,
                  " to ", most),
              Json(Json::object().set("where", name)));
  return number;
}

std::vector<std::string> list_in(const Query& query, std::string_view name) {
  std::vector<std::string> words;
  const std::string text = query.get(name);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace heddle::engine
