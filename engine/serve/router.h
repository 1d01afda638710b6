// Which function answers which path. Filled once, then any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serve/http_message.h"
#include "engine/serve/url.h"

namespace heddle::engine {

// A request as its route sees it.
struct Call {
  const HttpRequest& request;
  Query query;
  std::map<std::string, std::string, std::less<>> parts;  // of the path, by name, decoded

  const std::string& part(std::string_view name) const { return parts.find(name)->second; }
};

// Thrown by a route: the answer.
struct Refused {
  HttpResponse response;
};

class Router {
 public:
  using Route = std::function<HttpResponse(const Call&)>;

  // `pattern`: "/history/{id}"; a part stands for one segment, "{rest...}" for all that follow. A
  // part is matched before it is decoded: "%2F" is in a segment, not between two. GET answers HEAD,
  // too. Of several that match the first one counts.
  void add(std::string_view method, std::string_view pattern, Route route);
  // The same, and under "/api".
  void add_twice(std::string_view method, std::string_view pattern, const Route& route);

  // Called before every route with its "GET /history/{id}"; what it refuses is not answered.
  using Guard = std::function<void(const Call& call, std::string_view pattern)>;
  void set_guard(Guard guard) { guard_ = std::move(guard); }

  // 404 and 405 where nothing matches.
  HttpResponse answer(const HttpRequest& request) const;

  // "GET /history/{id}", as they were added: for documents and tests.
  std::vector<std::string> patterns() const;

 private:
  struct Entry {
    std::string method;
    std::vector<std::string> segments;
    Route route;
    std::string pattern() const;
  };
  std::vector<Entry> entries_;
  Guard guard_;
};

}  // namespace heddle::engine
