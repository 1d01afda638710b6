// /v1/session: a browser shows the key once.
#include <boost/test/unit_test.hpp>

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct WithKey : Serving {
  WithKey() : Serving([](engine::ServiceOptions& options) { options.api_key = "secret"; }) {}

  Reply sign_in(const std::string& key, const std::string& headers = "") const {
    return ask(port(), "POST", "/v1/session", "{\"api_key\": \"" + key + "\"}",
               "Host: 127.0.0.1\r\n" + headers);
  }
  static std::string cookie_of(const Reply& reply) {
    const std::string all = reply.header("set-cookie");
    return "Host: 127.0.0.1\r\nCookie: " + all.substr(0, all.find(';')) + "\r\n";
  }
  bool is_signed_in(const std::string& headers) const {
    const Reply reply = ask(port(), "GET", "/v1/session", "", headers);
    BOOST_TEST(reply.json().at("needs_key").as_bool());
    BOOST_TEST(reply.header("cache-control") == "no-store");
    return reply.json().at("is_signed_in").as_bool();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(session_routes)

BOOST_FIXTURE_TEST_CASE(a_browser_signs_in_and_out, WithKey) {
  BOOST_TEST(!is_signed_in("Host: 127.0.0.1\r\n"));
  const Reply in = sign_in("secret");
  BOOST_TEST(in.status == 204);
  const std::string set = in.header("set-cookie"), cookie = cookie_of(in);
  for (const char* part : {"; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=2592000"})
    BOOST_TEST(set.find(part) != std::string::npos, set);
  BOOST_TEST(set.find("secret") == std::string::npos);
  BOOST_TEST(set.find("Secure") == std::string::npos);  // it is not sent encrypted here
  BOOST_TEST(is_signed_in(cookie));
  BOOST_TEST(ask(port(), "GET", "/queue", "", cookie).status == 200);
  BOOST_TEST(SocketClient(port(), "/ws", cookie).reply.status == 101);

  const Reply out = ask(port(), "DELETE", "/v1/session", "", cookie);
  BOOST_TEST(out.status == 204);
  BOOST_TEST(out.header("set-cookie").find("Max-Age=0") != std::string::npos);
  BOOST_TEST(!is_signed_in(cookie));
  BOOST_TEST(ask(port(), "GET", "/queue", "", cookie).status == 401);
}

BOOST_FIXTURE_TEST_CASE(each_sign_in_has_a_session_of_its_own, WithKey) {
  const std::string first = cookie_of(sign_in("secret")), second = cookie_of(sign_in("secret"));
  BOOST_TEST(first != second);
  ask(port(), "DELETE", "/v1/session", "", first);
  BOOST_TEST(!is_signed_in(first));
  BOOST_TEST(is_signed_in(second));
}

BOOST_FIXTURE_TEST_CASE(behind_tls_the_cookie_stays_there, WithKey) {
  const std::string forwarded = "X-Forwarded-Proto: https\r\n";
  BOOST_TEST(!sign_in("secret", forwarded).header("set-cookie").ends_with("; Secure"));
  service.reset();
  options.proxy.trusted = {*engine::ProxyAddress::parse("127.0.0.1")};
  options.proxy.prefix = "/studio";
  start();
  const std::string set = sign_in("secret", forwarded).header("set-cookie");
  BOOST_TEST(set.ends_with("; Secure"), set);
  BOOST_TEST(set.find("; Path=/studio/;") != std::string::npos, set);
}

BOOST_FIXTURE_TEST_CASE(wrong_keys_open_nothing, WithKey) {
  for (const char* body : {"", "[]", "{}", "{\"api_key\": 1}", "secret"})
    BOOST_TEST(post("/v1/session", body).status == 400, body);
  for (int i = 0; i < 5; ++i) {
    const Reply reply = sign_in("wrong");
    BOOST_TEST(reply.status == 401);
    BOOST_TEST(reply.header("set-cookie") == "");
  }
  const Reply late = sign_in("secret");
  BOOST_TEST(late.status == 429);
  BOOST_TEST(late.json().at("error").at("code").as_string() == "too_many_requests");
  BOOST_TEST(late.header("retry-after") == "1");
  BOOST_TEST(late.header("set-cookie") == "");
}

BOOST_FIXTURE_TEST_CASE(pages_of_other_sites_cannot_sign_in, WithKey) {
  BOOST_TEST(sign_in("secret", "Origin: http://evil.example\r\n").status == 403);
}

BOOST_FIXTURE_TEST_CASE(the_page_is_there_before_the_key, WithKey) {
  for (const char* path : {"/", "/heddle", "/heddle/main.js"})
    BOOST_TEST(get(path).status == 200, path);
  BOOST_TEST(get("/object_info").status == 401);
  BOOST_TEST(post("/v1/session", std::string(5000, 'x')).status == 413);
}

BOOST_AUTO_TEST_CASE(without_a_key_everybody_is_in) {
  const Serving serving;
  BOOST_TEST(!serving.get("/v1/session").json().at("needs_key").as_bool());
  BOOST_TEST(serving.post("/v1/session", "").status == 204);
  BOOST_TEST(ask(serving.port(), "DELETE", "/v1/session").status == 204);
}

BOOST_AUTO_TEST_SUITE_END()
