#include "engine/serve/forwarded.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;

namespace {

ProxyRules rules_of(std::initializer_list<const char*> trusted, std::string prefix = "") {
  ProxyRules rules;
  for (const char* one : trusted) rules.trusted.push_back(*ProxyAddress::parse(one));
  rules.prefix = std::move(prefix);
  return rules;
}

HttpRequest taken(const std::string& peer, std::vector<std::pair<std::string, std::string>> headers,
                  const ProxyRules& rules, const std::string& path = "/") {
  HttpRequest request;
  request.peer = peer;
  request.path = path;
  request.headers = std::move(headers);
  take_forwarded(request, rules);
  return request;
}

bool is_in(const char* network, const char* address) {
  const auto parsed = ProxyAddress::parse(network);
  BOOST_TEST_REQUIRE(parsed.has_value(), network);
  return parsed->contains(address);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forwarded)

BOOST_AUTO_TEST_CASE(networks_contain_addresses) {
  BOOST_TEST(is_in("127.0.0.1", "127.0.0.1"));
  BOOST_TEST(!is_in("127.0.0.1", "127.0.0.2"));
  BOOST_TEST(is_in("10.0.0.0/8", "10.255.0.1"));
  BOOST_TEST(!is_in("10.0.0.0/8", "11.0.0.1"));
  BOOST_TEST(is_in("10.0.0.128/25", "10.0.0.200"));
  BOOST_TEST(!is_in("10.0.0.128/25", "10.0.0.100"));
  BOOST_TEST(is_in("0.0.0.0/0", "8.8.8.8"));
  BOOST_TEST(!is_in("0.0.0.0/0", "::1"));
  BOOST_TEST(is_in("2001:db8::/32", "2001:db8:1::5"));
  BOOST_TEST(is_in("127.0.0.1", "::ffff:127.0.0.1"));
  BOOST_TEST(is_in("unix", "unix"));
  BOOST_TEST(!is_in("unix", "127.0.0.1"));
  BOOST_TEST(!is_in("0.0.0.0/0", "unix"));
  BOOST_TEST(!is_in("0.0.0.0/0", ""));
  for (const char* bad : {"", "proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::1/129", "1.2"})
    BOOST_TEST(!ProxyAddress::parse(bad).has_value(), bad);
}

BOOST_AUTO_TEST_CASE(only_named_proxies_are_believed) {
  const std::vector<std::pair<std::string, std::string>> headers = {
      {"Host", "inside:8188"},
      {"X-Forwarded-For", "203.0.113.7"},
      {"X-Forwarded-Proto", "https"},
      {"x-forwarded-host", "studio.example"}};
  const HttpRequest believed = taken("10.0.0.2", headers, rules_of({"10.0.0.2"}));
  BOOST_TEST(believed.peer == "203.0.113.7");
  BOOST_TEST(believed.is_encrypted);
  BOOST_TEST(*believed.header("Host") == "studio.example");
  for (const char* peer : {"10.0.0.3", "unix", ""}) {
    const HttpRequest other = taken(peer, headers, rules_of({"10.0.0.2"}));
    BOOST_TEST(other.peer == peer);
    BOOST_TEST(!other.is_encrypted);
    BOOST_TEST(*other.header("Host") == "inside:8188");
  }
  BOOST_TEST(taken("unix", headers, rules_of({"unix"})).peer == "203.0.113.7");
}

BOOST_AUTO_TEST_CASE(the_client_is_the_last_whom_no_proxy_is) {
  const auto client = [](std::vector<std::string> hops) {
    std::vector<std::pair<std::string, std::string>> headers;
    for (std::string& hop : hops) headers.emplace_back("X-Forwarded-For", std::move(hop));
    return taken("10.0.0.2", std::move(headers), rules_of({"10.0.0.0/8"})).peer;
  };
  BOOST_TEST(client({}) == "10.0.0.2");
  BOOST_TEST(client({"203.0.113.7"}) == "203.0.113.7");
  // What the client itself has written stands before it, and is not believed.
  BOOST_TEST(client({"1.2.3.4, 203.0.113.7, 10.0.0.1"}) == "203.0.113.7");
  BOOST_TEST(client({"1.2.3.4", "203.0.113.7", "10.0.0.1"}) == "203.0.113.7");
  BOOST_TEST(client({"nobody, 10.0.0.1"}) == "10.0.0.1");
  BOOST_TEST(client({"203.0.113.7:5000"}) == "203.0.113.7");
  BOOST_TEST(client({"[2001:db8::1]:5000"}) == "2001:db8::1");
  BOOST_TEST(client({"2001:db8::1"}) == "2001:db8::1");
  BOOST_TEST(client({"", ",", "["}) == "10.0.0.2");
}

BOOST_AUTO_TEST_CASE(a_prefix_goes_where_it_stands) {
  const auto path = [](const char* given) {
    const HttpRequest request = taken("1.1.1.1", {}, rules_of({}, "/studio"), given);
    BOOST_TEST(request.prefix == "/studio");
    return request.path;
  };
  BOOST_TEST(path("/studio/queue") == "/queue");
  BOOST_TEST(path("/studio") == "/");
  BOOST_TEST(path("/studio/") == "/");
  BOOST_TEST(path("/queue") == "/queue");  // the proxy has taken it away
  BOOST_TEST(path("/studios/a") == "/studios/a");
}

BOOST_AUTO_TEST_SUITE_END()
