#include "engine/serve/access.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

using namespace heddle::engine;

namespace {

HttpRequest asked(std::vector<std::pair<std::string, std::string>> headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

unsigned status_of(HttpRequest request, const AccessRules& rules = {}) {
  const auto refusal = check_access(request, rules);
  return refusal ? refusal->status : 200;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(access_rules)

BOOST_AUTO_TEST_CASE(hosts_are_taken_apart) {
  const auto text = [](std::string_view host) {
    const auto parsed = parse_host(host);
    return parsed ? parsed->host + "|" + parsed->port : "none";
  };
  BOOST_TEST(text("LocalHost:8188") == "localhost|8188");
  BOOST_TEST(text("127.0.0.1") == "127.0.0.1|");
  BOOST_TEST(text("[::1]:80") == "::1|80");
  for (const char* bad : {"", ":80", "[::1", "[::1]x", "a:b", "a:999999", "a/b", "a b", "u@h"})
    BOOST_TEST(text(bad) == "none", bad);
}

BOOST_AUTO_TEST_CASE(only_names_of_this_machine_lead_here) {
  for (const char* host : {"127.0.0.1:8188", "localhost", "LOCALHOST:1", "[::1]:8188", "127.1.2.3"})
    BOOST_TEST(status_of(asked({{"Host", host}})) == 200u, host);
  for (const char* host : {"evil.example", "evil.example:8188", "192.168.1.5",
                           "127.0.0.1.evil.example", "localhost.evil.example", "[2001:db8::1]"})
    BOOST_TEST(status_of(asked({{"Host", host}})) == 403u, host);
  BOOST_TEST(status_of(asked({})) == 400u);
  BOOST_TEST(status_of(asked({{"Host", "a/b"}})) == 400u);
  // A server for others is asked by its address; a name may lead anywhere.
  const AccessRules open{.is_loopback_only = false};
  BOOST_TEST(status_of(asked({{"Host", "192.168.1.5:8188"}}), open) == 200u);
  BOOST_TEST(status_of(asked({{"Host", "evil.example"}}), open) == 403u);
}

BOOST_AUTO_TEST_CASE(pages_of_other_sites_are_refused) {
  const auto from = [](const char* origin, const char* host = "127.0.0.1:8188") {
    return status_of(asked({{"Host", host}, {"Origin", origin}}));
  };
  BOOST_TEST(from("http://127.0.0.1:8188") == 200u);
  BOOST_TEST(from("http://127.0.0.1") == 200u);  // one of both says no port
  BOOST_TEST(from("http://127.0.0.1:3000", "127.0.0.1") == 200u);
  BOOST_TEST(from("http://127.0.0.1:3000") == 403u);
  BOOST_TEST(from("http://localhost:8188") == 403u);
  BOOST_TEST(from("https://evil.example") == 403u);
  BOOST_TEST(from("null") == 403u);
  BOOST_TEST(from("") == 403u);
  const auto fetched = [](const char* site, const char* mode) {
    return status_of(
        asked({{"Host", "127.0.0.1"}, {"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}}));
  };
  BOOST_TEST(fetched("cross-site", "no-cors") == 403u);
  BOOST_TEST(fetched("cross-site", "navigate") == 200u);  // somebody follows a link
  BOOST_TEST(fetched("same-origin", "cors") == 200u);
}

BOOST_AUTO_TEST_CASE(pages_of_a_named_site_may_ask) {
  Authenticator authenticator("k", [] { return 0; });
  const AccessRules rules{.authenticator = &authenticator, .cors_origin = "https://app.example"};
  const AccessRules open{.cors_origin = "*"};
  const auto from = [](const char* origin, const AccessRules& rules) {
    return status_of(
        asked({{"Host", "127.0.0.1"}, {"Origin", origin}, {"Authorization", "Bearer k"}}), rules);
  };
  BOOST_TEST(from("https://app.example", rules) == 200u);
  for (const char* other :
       {"https://app.example.evil.example", "http://app.example", "null", "https://evil.example"}) {
    BOOST_TEST(from(other, rules) == 403u, other);
    BOOST_TEST(from(other, open) == 200u, other);
  }
  // A picture in its page is asked for without an Origin.
  const auto picture = [](const char* page, const AccessRules& rules) {
    return status_of(asked({{"Host", "127.0.0.1"},
                            {"Referer", page},
                            {"Sec-Fetch-Site", "cross-site"},
                            {"Sec-Fetch-Mode", "no-cors"},
                            {"Authorization", "Bearer k"}}),
                     rules);
  };
  BOOST_TEST(picture("https://app.example/gallery?x", rules) == 200u);
  BOOST_TEST(picture("https://evil.example/https://app.example/", rules) == 403u);
  // The key is not brought by what a browser asks beforehand, but by all that follows.
  HttpRequest before = asked({{"Host", "127.0.0.1"},
                              {"Origin", "https://app.example"},
                              {"Access-Control-Request-Method", "POST"}});
  BOOST_TEST(status_of(before, rules) == 401u);
  before.method = "OPTIONS";
  BOOST_TEST(status_of(before, rules) == 200u);
  BOOST_TEST(status_of(before, AccessRules{.authenticator = &authenticator}) == 403u);
}

BOOST_AUTO_TEST_CASE(a_key_is_asked_for) {
  Authenticator authenticator("secret", [] { return 0; });
  const AccessRules rules{.is_loopback_only = false, .authenticator = &authenticator};
  const auto with = [&](const char* name, const char* value) {
    return status_of(asked({{"Host", "studio.example"}, {name, value}}), rules);
  };
  BOOST_TEST(with("Authorization", "Bearer secret") == 200u);
  BOOST_TEST(with("authorization", "bearer secret") == 200u);
  BOOST_TEST(with("X-API-Key", "secret") == 200u);
  BOOST_TEST(with("Authorization", "Bearer secre") == 401u);
  BOOST_TEST(with("Authorization", "Bearer secrets") == 401u);
  BOOST_TEST(with("Authorization", "Basic secret") == 401u);
  BOOST_TEST(with("X-API-Key", "") == 401u);
  BOOST_TEST(with("Other", "secret") == 401u);
}

BOOST_AUTO_TEST_CASE(a_session_stands_for_the_key) {
  Authenticator authenticator("secret", [] { return 0; });
  const AccessRules rules{.is_loopback_only = false, .authenticator = &authenticator};
  const std::string token = authenticator.open_session(operator_caller());
  const auto with = [&](const std::string& cookie) {
    return status_of(asked({{"Host", "studio.example"}, {"Cookie", cookie}}), rules);
  };
  BOOST_TEST(with("heddle_session=" + token) == 200u);
  BOOST_TEST(with("a=b; heddle_session=" + token + "; c=d") == 200u);
  BOOST_TEST(with("not_heddle_session=" + token) == 401u);
  BOOST_TEST(with("heddle_session=" + token.substr(1)) == 401u);
  BOOST_TEST(with("heddle_session=secret") == 401u);  // it is no key
  // A session says nothing of where a request comes from.
  BOOST_TEST(status_of(asked({{"Host", "studio.example"},
                              {"Origin", "https://evil.example"},
                              {"Cookie", "heddle_session=" + token}}),
                       rules) == 403u);
}

BOOST_AUTO_TEST_CASE(the_way_to_sign_in_is_open) {
  Authenticator authenticator("secret", [] { return 0; });
  const auto to = [&](const char* path, bool has_front_end,
                      std::vector<std::pair<std::string, std::string>> headers = {}) {
    headers.emplace_back("Host", "studio.example");
    HttpRequest request = asked(std::move(headers));
    request.method = "GET";
    request.path = path;
    const AccessRules rules{false, &authenticator, has_front_end};
    return check_access(request, rules).value_or(HttpResponse{});
  };
  for (const char* path : {"/heddle", "/heddle/main.js", "/v1/session"})
    BOOST_TEST(to(path, true).status == 200u, path);
  for (const char* path : {"/heddles", "/v1/sessions", "/v1/session/x", "/queue", "/main.js"})
    BOOST_TEST(to(path, true).status == 401u, path);
  BOOST_TEST(to("/", false).status == 200u);
  BOOST_TEST(to("/", true).status == 401u);
  const HttpResponse led = to("/", true, {{"Accept", "text/html,*/*"}});
  BOOST_TEST(led.status == 303u);
  BOOST_TEST((led.headers.front() ==
              std::pair<std::string, std::string>("Location", "heddle?then=front-end")));
  // Nobody fills the memory on that way.
  BOOST_TEST(to("/v1/session", true, {{"Content-Length", "4096"}}).status == 200u);
  BOOST_TEST(to("/v1/session", true, {{"Content-Length", "4097"}}).status == 413u);
  BOOST_TEST(to("/v1/session", true, {{"Content-Length", "-1"}}).status == 413u);
  BOOST_TEST(to("/v1/session", true, {{"Transfer-Encoding", "chunked"}}).status == 413u);
}

BOOST_AUTO_TEST_CASE(wrong_keys_are_slowed_down) {
  std::int64_t now = 0;
  Authenticator authenticator("secret", [&] { return now; });
  const AccessRules rules{.is_loopback_only = false, .authenticator = &authenticator};
  const auto with = [&](const std::string& key, const char* peer = "10.0.0.1") {
    HttpRequest request = asked({{"Host", "10.0.0.9"}, {"X-API-Key", key}});
    request.peer = peer;
    return check_access(request, rules).value_or(HttpResponse{});
  };
  for (int i = 0; i < 5; ++i) BOOST_TEST(with("wrong").status == 401u);
  const HttpResponse late = with("secret");
  BOOST_TEST(late.status == 429u);
  const std::pair<std::string, std::string> wait("Retry-After", "1");
  BOOST_TEST(std::ranges::count(late.headers, wait) == 1);
  BOOST_TEST(with("secret", "10.0.0.2").status == 200u);
  now = 1000;
  BOOST_TEST(with("secret").status == 200u);
  // Without any key nobody guesses.
  for (int i = 0; i < 20; ++i) BOOST_TEST(with("").status == 401u);
  BOOST_TEST(with("secret").status == 200u);
}

BOOST_AUTO_TEST_SUITE_END()
