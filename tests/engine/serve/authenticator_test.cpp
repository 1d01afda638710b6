#include "engine/serve/authenticator.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

using namespace heddle::engine;

namespace {

struct Clocked {
  std::int64_t now = 1'000'000;
  Authenticator authenticator{"secret", [this] { return now; }};

  Authenticator::Verdict verdict(std::string_view key, const std::string& peer = "10.0.0.1") {
    return authenticator.check_key(key, peer).verdict;
  }
  // How long a peer waits after so many wrong keys more.
  std::int64_t wait_after(int wrong) {
    for (int i = 0; i < wrong; ++i) verdict("wrong");
    return authenticator.check_key("secret", "10.0.0.1").wait_seconds;
  }
};

constexpr auto kRight = Authenticator::Verdict::right;
constexpr auto kWrong = Authenticator::Verdict::wrong;
constexpr auto kWait = Authenticator::Verdict::wait;

}  // namespace

BOOST_AUTO_TEST_SUITE(authenticators)

BOOST_FIXTURE_TEST_CASE(one_key_is_right, Clocked) {
  BOOST_TEST((verdict("secret") == kRight));
  for (const char* key : {"", "secre", "secrets", "Secret", "secretsecret"})
    BOOST_TEST((verdict(key, key) == kWrong), key);
}

BOOST_FIXTURE_TEST_CASE(each_wrong_key_more_takes_twice_as_long, Clocked) {
  BOOST_TEST(wait_after(5) == 1);
  for (const std::int64_t seconds : {2, 4, 8, 16, 32, 60, 60}) {
    now += 60'000;
    BOOST_TEST(wait_after(1) == seconds);
  }
  // What is not looked at does not count.
  BOOST_TEST(wait_after(100) == 60);
  now += 59'999;
  BOOST_TEST((verdict("secret") == kWait));
  now += 1;
  BOOST_TEST((verdict("secret") == kRight));
  BOOST_TEST(wait_after(4) == 0);
}

BOOST_FIXTURE_TEST_CASE(mistakes_are_forgotten, Clocked) {
  for (int i = 0; i < 4; ++i) verdict("wrong");
  now += 16 * 60'000;
  BOOST_TEST(wait_after(4) == 0);
  BOOST_TEST((verdict("secret") == kRight));
}

// Whoever has many addresses fills no memory, and takes nobody else's time.
BOOST_FIXTURE_TEST_CASE(peers_are_counted_apart, Clocked) {
  for (int i = 0; i < 5000; ++i) verdict("wrong", "peer" + std::to_string(i));
  BOOST_TEST((verdict("secret", "10.0.0.1") == kRight));
}

BOOST_FIXTURE_TEST_CASE(a_session_is_known_until_it_ends, Clocked) {
  const std::string token = authenticator.open_session(operator_caller());
  BOOST_TEST(token.size() == 64u);
  BOOST_TEST(authenticator.session(token).has_value());
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = other[i] == '0' ? '1' : '0';
    BOOST_TEST(!authenticator.session(other), i);
  }
  BOOST_TEST(!authenticator.session(""));
  BOOST_TEST(!authenticator.session("secret"));
  BOOST_TEST(!authenticator.session(token + "0"));
  authenticator.end_session(token.substr(0, 63) + (token.back() == '0' ? '1' : '0'));
  BOOST_TEST(authenticator.session(token).has_value());
  authenticator.end_session(token);
  BOOST_TEST(!authenticator.session(token));
}

BOOST_FIXTURE_TEST_CASE(sessions_do_not_last_for_ever, Clocked) {
  const std::string token = authenticator.open_session(operator_caller());
  now += Authenticator::kSessionMs - 1;
  BOOST_TEST(authenticator.session(token).has_value());
  now += 1;
  BOOST_TEST(!authenticator.session(token));
}

BOOST_FIXTURE_TEST_CASE(the_oldest_session_makes_room, Clocked) {
  std::vector<std::string> tokens;
  std::set<std::string> different;
  for (int i = 0; i < 1001; ++i) {
    ++now;
    tokens.push_back(authenticator.open_session(operator_caller()));
    different.insert(tokens.back());
  }
  BOOST_TEST(different.size() == tokens.size());
  BOOST_TEST(!authenticator.session(tokens.front()));
  for (std::size_t i = 1; i < tokens.size(); ++i)
    BOOST_TEST(authenticator.session(tokens[i]).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
