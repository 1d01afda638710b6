#include "engine/serve/router.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"

using namespace heddle::engine;

namespace {

struct Routes {
  Router router;
  Routes() {
    const auto tell = [](std::string name) {
      return [name](const Call& call) {
        std::string text = name;
        for (const auto& [part, value] : call.parts) text += cat(" ", part, "=", value);
        return text_response(text);
      };
    };
    router.add_twice("GET", "/history/{id}", tell("one"));
    router.add_twice("GET", "/history", tell("all"));
    router.add_twice("POST", "/history", tell("post"));
    router.add_twice("POST", "/userdata/{file}/move/{dest}", tell("move"));
    router.add("GET", "/static/{path...}", tell("file"));
    router.add("GET", "/", tell("home"));
    router.add("GET", "/refused",
               [](const Call&) -> HttpResponse { throw Refused{text_response("no", 409)}; });
  }
  std::string ask(const std::string& method, const std::string& path) const {
    HttpRequest request;
    request.method = method;
    request.path = path;
    const HttpResponse response = router.answer(request);
    return response.status == 200 ? response.body : cat(response.status);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(router)

BOOST_FIXTURE_TEST_CASE(paths_find_their_routes, Routes) {
  BOOST_TEST(ask("GET", "/") == "home");
  BOOST_TEST(ask("GET", "/history") == "all");
  BOOST_TEST(ask("GET", "/api/history") == "all");
  BOOST_TEST(ask("HEAD", "/history") == "all");
  BOOST_TEST(ask("POST", "/api/history") == "post");
  BOOST_TEST(ask("GET", "/history/a-b") == "one id=a-b");
  BOOST_TEST(ask("GET", "/history/a%20b%2Fc") == "one id=a b/c");
  BOOST_TEST(ask("POST", "/userdata/workflows%2Fa.json/move/b%2Fc.json") ==
             "move dest=b/c.json file=workflows/a.json");
  BOOST_TEST(ask("GET", "/static/a/b/c.js") == "file path=a/b/c.js");
  BOOST_TEST(ask("GET", "/refused") == "409");
}

BOOST_FIXTURE_TEST_CASE(others_are_not_found_or_not_allowed, Routes) {
  for (const char* path : {"/none", "/history/", "/history/a/b", "/api", "/api/api/history",
                           "/history/%zz", "/history/a%00b", "/static/", "/History"})
    BOOST_TEST(ask("GET", path) == "404", path);
  BOOST_TEST(ask("DELETE", "/history") == "405");
  HttpRequest request;
  request.method = "PUT";
  request.path = "/history";
  BOOST_TEST(router.answer(request).headers.back().second == "GET,POST");
}

BOOST_AUTO_TEST_CASE(queries_are_taken_apart) {
  const Query query("a=1&b=x%20y+z&c&d=&a=2&bad=%zz&ok=TRUE");
  BOOST_TEST(query.get("a") == "1");
  BOOST_TEST(query.get("b") == "x y z");
  BOOST_TEST((query.find("c") != nullptr && query.find("c")->empty()));
  BOOST_TEST(query.find("none") == nullptr);
  BOOST_TEST(query.get("none", "other") == "other");
  BOOST_TEST(query.get("bad") == "%zz");
  BOOST_TEST(query.is_true("ok"));
  BOOST_TEST(!query.is_true("b"));
  BOOST_TEST(query.is_true("none", true));
}

BOOST_AUTO_TEST_CASE(names_are_encoded_for_urls) {
  BOOST_TEST(percent_encoded("a-Z_0.~") == "a-Z_0.~");
  BOOST_TEST(percent_encoded("a b/c?d&e=\xc3\xa4%") == "a%20b%2Fc%3Fd%26e%3D%C3%A4%25");
  BOOST_TEST(percent_decoded(percent_encoded("\x01 +\xff")).value() == "\x01 +\xff");
}

BOOST_AUTO_TEST_SUITE_END()
