// What the routes under /v1, an interface of our own, share: how errors are told, how bodies and
// queries are read. Its document is v1_openapi.json. Any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/serve/router.h"

namespace heddle::engine {

// {"error": {"code": ..., "message": ..., and the members of `more`}}.
HttpResponse v1_error(unsigned status, std::string_view code, std::string_view message,
                      const Json& more = Json::object());
// Throws it as the answer.
[[noreturn]] void refuse_v1(unsigned status, std::string_view code, std::string_view message,
                            const Json& more = Json::object());

// "invalid_argument", of a number of Code or of heddle_code.
std::string v1_code(int code);

// A route whose errors are told in that shape.
void add_v1(Router& router, std::string_view method, std::string_view pattern, Router::Route route);

// Whether a path is one of /v1.
bool is_v1(std::string_view path);
// The answer to a request under /v1: what is refused before a route is reached gets the shape of
// errors.
HttpResponse as_v1(const HttpRequest& request, HttpResponse response);

// The JSON object of a body, which may be missing. What is of another type, or no member that is
// known, is refused: a misspelt one would do something else than was asked for.
class Fields {
 public:
  Fields(const Call& call, std::initializer_list<std::string_view> known);

  // nullptr where it is not given, or null.
  const Json* find(std::string_view name) const;
  std::string text(std::string_view name) const;  // "" where it is not given
  bool flag(std::string_view name) const;         // false
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least,
                                      std::int64_t most) const;
  std::vector<std::string> texts(std::string_view name) const;  // empty
  const Json* object(std::string_view name) const;

 private:
  Json body_;
};

// Of a query; `otherwise` where it is not given.
std::int64_t whole_number(const Query& query, std::string_view name, std::int64_t least,
                          std::int64_t most, std::int64_t otherwise);
// "a,b" -> {"a", "b"}; empty where it is not given.
std::vector<std::string> list_in(const Query& query, std::string_view name);

// The document of these routes, OpenAPI 3.1.
std::string_view v1_openapi();

// A text, or null where it is empty.
Json text_or_null(const std::string& text);
Json json_list(const std::vector<std::string>& texts);

}  // namespace heddle::engine
