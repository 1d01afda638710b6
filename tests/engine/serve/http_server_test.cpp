#include "engine/serve/http_server.h"

#include <fcntl.h>

#include <boost/test/unit_test.hpp>
#include <future>
#include <mutex>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "tests/engine/serve/http_client.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

constexpr const char* kHost = "Host: 127.0.0.1\r\n";

// Answers with what it was asked.
HttpResponse echo(const HttpRequest& request) {
  if (request.path == "/throws") throw std::runtime_error("a fault of ours");
  if (request.path == "/empty") return {204, {}, "", {}};
  Json told = Json::object();
  told.set("method", request.method).set("path", request.path).set("query", request.query);
  told.set("body", request.body);
  return json_response(told);
}

struct Echo {
  static ServerLimits small_limits() {
    ServerLimits limits;
    limits.body_bytes = 1000;
    limits.header_bytes = 2000;
    return limits;
  }
  explicit Echo(ServerLimits limits = small_limits(), ServerHandlers given = {})
      : server({.limits = limits}, with_defaults(std::move(given))) {}
  static ServerHandlers with_defaults(ServerHandlers given) {
    if (!given.check) given.check = [](const HttpRequest&) { return std::nullopt; };
    if (!given.answer) given.answer = echo;
    if (!given.connect)
      given.connect = [](const HttpRequest&, const auto&) { return std::nullopt; };
    return given;
  }
  std::uint16_t port() const { return server.port(); }
  HttpServer server;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http_server)

BOOST_AUTO_TEST_CASE(requests_are_answered_one_after_another) {
  const Echo echo;
  Connection connection(echo.port());
  for (int i = 0; i < 3; ++i) {
    const Reply reply = connection.ask("POST", cat("/a%2Fb?x=", i), "{\"n\": 1}");
    BOOST_TEST(reply.status == 200);
    BOOST_TEST(reply.json().at("path").as_string() == "/a%2Fb");
    BOOST_TEST(reply.json().at("query").as_string() == cat("x=", i));
    BOOST_TEST(reply.json().at("body").as_string() == "{\"n\": 1}");
  }
  // Two at once on the wire, and in pieces.
  connection.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHo");
  BOOST_TEST(connection.read_reply().json().at("path").as_string() == "/1");
  connection.send("st: a\r\n\r\n");
  BOOST_TEST(connection.read_reply().json().at("path").as_string() == "/2");
}

BOOST_AUTO_TEST_CASE(a_connection_is_closed_when_it_is_asked_for) {
  const Echo echo;
  Connection connection(echo.port());
  BOOST_TEST(connection.ask("GET", "/", "", "Host: a\r\nConnection: close\r\n").status == 200);
  BOOST_TEST(connection.is_closed());
}

BOOST_AUTO_TEST_CASE(answers_without_a_body_have_none) {
  const Echo echo;
  Connection connection(echo.port());
  const Reply head = connection.ask("HEAD", "/x");
  BOOST_TEST(head.status == 200);
  BOOST_TEST(std::stoi(head.header("content-length")) > 10);
  const Reply empty = connection.ask("GET", "/empty");
  BOOST_TEST(empty.status == 204);
  BOOST_TEST(empty.header("content-length") == "");
  BOOST_TEST(connection.ask("GET", "/y").status == 200);  // nothing is left in between
}

BOOST_AUTO_TEST_CASE(bodies_come_in_chunks_and_after_a_word) {
  const Echo echo;
  Connection connection(echo.port());
  connection.send(cat("POST /c HTTP/1.1\r\n", kHost,
                      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
  BOOST_TEST(connection.read_reply().json().at("body").as_string() == "abcde");
  connection.send(
      cat("POST /c HTTP/1.1\r\n", kHost, "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  BOOST_TEST(connection.read_reply(false).status == 100);
  connection.send("xyz");
  BOOST_TEST(connection.read_reply().json().at("body").as_string() == "xyz");
}

BOOST_AUTO_TEST_CASE(what_is_too_large_or_no_http_is_refused) {
  const Echo echo;
  const auto status = [&](const std::string& text) {
    Connection connection(echo.port());
    connection.send(text);
    const int got = connection.read_reply().status;
    BOOST_TEST(connection.is_closed());
    return got;
  };
  BOOST_TEST(status("nonsense\r\n\r\n") == 400);
  BOOST_TEST(status("GET / HTTP/9.9\r\n\r\n") == 400);
  BOOST_TEST(status(cat("POST / HTTP/1.1\r\n", kHost, "Content-Length: x\r\n\r\n")) == 400);
  BOOST_TEST(status(cat("POST / HTTP/1.1\r\n", kHost, "Content-Length: 1001\r\n\r\n")) == 413);
  BOOST_TEST(status(cat("POST / HTTP/1.1\r\n", kHost, "Content-Length: 99999999999999\r\n\r\n")) ==
             413);
  BOOST_TEST(status(cat("GET / HTTP/1.1\r\n", kHost, "X: ", std::string(3000, 'x'), "\r\n\r\n")) ==
             431);
  const std::string chunked = cat("POST / HTTP/1.1\r\n", kHost, "Transfer-Encoding: chunked\r\n");
  BOOST_TEST(status(chunked + "\r\nzz\r\n") == 400);
  BOOST_TEST(status(chunked + "Content-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n") == 400);
  BOOST_TEST(status(chunked + "\r\n800\r\n" + std::string(0x800, 'x') + "\r\n0\r\n\r\n") == 413);
}

BOOST_AUTO_TEST_CASE(slow_clients_are_cut_off) {
  ServerLimits limits;
  limits.header_ms = limits.idle_ms = limits.body_ms = 100;
  limits.body_bytes_per_second = 1 << 20;
  const Echo echo(limits);
  for (const std::string& beginning :
       {std::string(), std::string("GET / HT"),
        cat("POST / HTTP/1.1\r\n", kHost, "Content-Length: 10\r\n\r\nabc")}) {
    Connection connection(echo.port());
    connection.send(beginning);
    BOOST_TEST(connection.is_closed());
  }
}

BOOST_AUTO_TEST_CASE(no_more_is_read_at_once_than_memory_allows) {
  ServerLimits limits;
  limits.body_bytes = 1000;
  limits.all_body_bytes = 1500;
  const Echo echo(limits);
  const std::string head = cat("POST / HTTP/1.1\r\n", kHost, "Content-Length: 1000\r\n\r\n");
  Connection first(echo.port());
  first.send(
      cat("POST / HTTP/1.1\r\n", kHost, "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n"));
  BOOST_TEST(first.read_reply(false).status == 100);  // its body is expected by now
  Connection second(echo.port());
  second.send(head);
  const Reply refused = second.read_reply();
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(refused.header("retry-after") == "5");
  first.send(std::string(1000, 'x'));
  BOOST_TEST(first.read_reply().status == 200);
  BOOST_TEST(ask(echo.port(), "POST", "/", std::string(1000, 'x')).status == 200);
}

BOOST_AUTO_TEST_CASE(a_request_can_be_refused_before_its_body) {
  ServerHandlers handlers;
  handlers.check = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.header("x-key") != nullptr) return {};
    return text_response("no", 403);
  };
  const Echo echo(Echo::small_limits(), handlers);
  Connection connection(echo.port());
  connection.send(cat("POST / HTTP/1.1\r\n", kHost, "Content-Length: 500\r\n\r\n"));
  BOOST_TEST(connection.read_reply().status == 403);
  BOOST_TEST(connection.is_closed());
  BOOST_TEST(ask(echo.port(), "GET", "/", "", "Host: a\r\nX-Key: 1\r\n").status == 200);
}

BOOST_AUTO_TEST_CASE(what_takes_long_holds_up_no_other_request) {
  std::promise<void> goes_on;
  const std::shared_future<void> may_go = goes_on.get_future().share();
  ServerHandlers handlers;
  handlers.takes_long = [](const HttpRequest& head) { return head.path == "/long"; };
  handlers.answer = [&](const HttpRequest& request) {
    if (request.path == "/long") may_go.wait();
    return text_response(request.path);
  };
  ServerHandlers all = Echo::with_defaults(handlers);
  HttpServer server({.answering_threads = 1, .patient_threads = 2}, all);
  std::vector<std::future<Reply>> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.push_back(
        std::async(std::launch::async, [&] { return ask(server.port(), "GET", "/long"); }));
  auto quick = std::async(std::launch::async, [&] { return ask(server.port(), "GET", "/quick"); });
  const bool is_quick = quick.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  goes_on.set_value();
  BOOST_TEST(is_quick);
  BOOST_TEST(quick.get().body == "/quick");
  for (std::future<Reply>& each : waiting) BOOST_TEST(each.get().body == "/long");
}

BOOST_AUTO_TEST_CASE(a_fault_of_a_handler_is_an_answer) {
  const Echo echo;
  Connection connection(echo.port());
  BOOST_TEST(connection.ask("GET", "/throws").status == 500);
  BOOST_TEST(connection.ask("GET", "/").status == 200);
}

BOOST_AUTO_TEST_CASE(files_are_sent_in_pieces) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += cat(i, ",");
  const std::string path = folder.write("file", content);
  ServerHandlers handlers;
  handlers.answer = [&](const HttpRequest& request) {
    HttpResponse response;
    auto file = std::make_shared<FileDescriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const bool is_part = request.path == "/part";
    response.file = FileSlice{file, is_part ? 10u : 0u, is_part ? 20 : content.size()};
    return response;
  };
  const Echo echo(Echo::small_limits(), handlers);
  Connection connection(echo.port());
  BOOST_TEST((connection.ask("GET", "/").body == content));
  BOOST_TEST(connection.ask("GET", "/part").body == content.substr(10, 20));
  BOOST_TEST(connection.ask("HEAD", "/").header("content-length") == cat(content.size()));
  BOOST_TEST(connection.ask("GET", "/part").body.size() == 20u);
}

BOOST_AUTO_TEST_CASE(connections_are_limited) {
  ServerLimits limits;
  limits.connections = 2;
  const Echo echo(limits);
  Connection first(echo.port()), second(echo.port());
  BOOST_TEST(first.ask("GET", "/").status == 200);
  BOOST_TEST(second.ask("GET", "/").status == 200);
  Connection third(echo.port());
  const Reply refused = third.read_reply();
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(refused.header("retry-after") == "5");
  BOOST_TEST(third.is_closed());
  BOOST_TEST(first.ask("GET", "/").status == 200);
}

BOOST_AUTO_TEST_CASE(addresses_that_cannot_be_used_are_refused) {
  const Echo echo;
  const auto refusal = [](const std::string& address, std::uint16_t port) -> std::string {
    try {
      const HttpServer server({.addresses = {address}, .port = port}, Echo::with_defaults({}));
    } catch (const Error& error) {
      return error.full();
    }
    return "";
  };
  BOOST_TEST(refusal("somewhere", 0).find("'somewhere' is no address") != std::string::npos);
  BOOST_TEST(refusal("127.0.0.1", echo.port()).find("name another one with --port") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
