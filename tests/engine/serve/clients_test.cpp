#include "engine/serve/clients.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <stdexcept>

using namespace heddle::engine;

namespace {

// The end of a connection may be anywhere, and may ask for anything.
class AskingSocket : public WebSocket {
 public:
  AskingSocket(const Clients& clients, std::atomic<int>& ended)
      : clients_(clients), ended_(ended) {}
  ~AskingSocket() override {
    clients_.count();
    ++ended_;
  }
  void send_text(Message) override {}
  void send_binary(Message, bool) override {}
  void close() override {}

 private:
  const Clients& clients_;
  std::atomic<int>& ended_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(clients)

// It would wait for itself.
BOOST_AUTO_TEST_CASE(no_connection_ends_under_the_lock) {
  std::atomic<int> ended = 0;
  Clients clients({[](const std::string&, const Caller&) { return std::vector<Json>{}; },
                   [] { return Json::object(); }});
  const auto connect = [&](const char* id) {
    return clients.connect(id, operator_caller(), std::make_shared<AskingSocket>(clients, ended));
  };
  const WebSocketEvents first = connect("a"), second = connect("a");
  BOOST_TEST(ended == 1);  // another one has its id
  first.closed();
  BOOST_TEST(clients.count() == 1u);
  second.closed();
  BOOST_TEST(ended == 2);
  connect("b");
  connect("c");
  clients.forget_all();
  BOOST_TEST(ended == 4);
  BOOST_TEST(clients.count() == 0u);
}

BOOST_AUTO_TEST_CASE(who_cannot_be_greeted_is_no_client) {
  std::atomic<int> ended = 0;
  Clients clients({[](const std::string&, const Caller&) -> std::vector<Json> {
                     throw std::runtime_error("the queue cannot be read");
                   },
                   [] { return Json::object(); }});
  BOOST_CHECK_THROW(
      clients.connect("a", operator_caller(), std::make_shared<AskingSocket>(clients, ended)),
      std::runtime_error);
  BOOST_TEST(clients.count() == 0u);
  BOOST_TEST(ended == 1);
}

// The answer may be logged, and the log is sent to clients.
BOOST_AUTO_TEST_CASE(who_is_gone_is_asked_without_the_lock) {
  std::atomic<int> ended = 0;
  Clients clients({[](const std::string&, const Caller&) { return std::vector<Json>{}; },
                   [] { return Json::object(); }});
  for (const char* user : {"ann", "bob"})
    clients.connect("a", Caller{user, false, user}, std::make_shared<AskingSocket>(clients, ended));
  clients.close_all([&](const Caller& caller) {
    clients.send_to_all(Json::object());
    return caller.user == "ann";
  });
  BOOST_TEST(ended == 1);
  BOOST_TEST(clients.count() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
