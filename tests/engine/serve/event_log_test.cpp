#include "engine/serve/event_log.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"

using namespace heddle::engine;

namespace {

// Keeps what it gets, until nobody reads any more.
struct Kept : HttpStream {
  std::string text;
  bool is_there = true, is_closed = false;
  bool send(std::string piece) override {
    if (is_there) text += piece;
    return is_there;
  }
  void close() override { is_closed = true; }
  bool is_read() const override { return is_there; }

  // "1:a 2:b", and the types of those without a number.
  std::string events() const {
    std::string told;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find("\n\n", at);
      BOOST_TEST_REQUIRE(end != std::string::npos);
      const std::string event = text.substr(at, end - at);
      const bool has_number = event.starts_with("id: ");
      const std::size_t line = has_number ? event.find('\n') + 1 : 0;
      if (!told.empty()) told += " ";
      if (has_number) told += cat(event.substr(4, line - 5), ":");
      told += event.substr(line + 7, event.find('\n', line) - line - 7);
      at = end + 2;
    }
    return told;
  }
};

struct Log {
  EventLog log{10, 3};  // begins with 10 and keeps three
  std::shared_ptr<Kept> follow(std::optional<std::uint64_t> after, const std::string& job = "") {
    auto stream = std::make_shared<Kept>();
    log.follow(stream, after, job);
    return stream;
  }
  void publish(std::string_view type, const std::string& job = "", bool is_last = false,
               const std::string& user = "") {
    log.publish(type, {job, user}, Json::object(), is_last);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(event_log)

BOOST_FIXTURE_TEST_CASE(events_are_numbered_and_reach_all_who_follow, Log) {
  publish("a");
  const auto late = follow({}), early = follow(0);
  publish("b");
  BOOST_TEST(late->events() == "11:b");
  BOOST_TEST(early->events() == "10:a 11:b");
  BOOST_TEST(late->text == "id: 11\nevent: b\ndata: {}\n\n");
  BOOST_TEST(log.readers() == 2u);
}

BOOST_FIXTURE_TEST_CASE(events_of_other_users_jobs_are_left_out, Log) {
  publish("a", "1", false, "ann");
  publish("b", "2", false, "bob");
  const auto ann = std::make_shared<Kept>();
  log.follow(ann, 0, "", {"ann", false, "k"});
  publish("c", "1", false, "ann");
  publish("d", "2", false, "bob");
  publish("e");  // of no job: for all
  BOOST_TEST(ann->events() == "10:a 12:c 14:e");
}

BOOST_FIXTURE_TEST_CASE(a_job_that_ended_before_that_is_told_has_an_end, Log) {
  const Json state = Json(Json::object().set("state", "done"));
  publish("a", "1");
  const auto early = follow(0, "1");
  log.close(early, "1", state);
  BOOST_TEST(early->text.ends_with("event: job\ndata: {\"state\":\"done\"}\n\n"));
  publish("b", "1", true);
  BOOST_TEST(early->text.find("event: b") == std::string::npos);
  const auto late = follow(0, "1");
  log.close(late, "1", state);
  BOOST_TEST(late->events() == "10:a 11:b");  // it has its end already
}

BOOST_FIXTURE_TEST_CASE(a_text_with_line_ends_stays_one_event, Log) {
  const auto reader = follow({});
  log.publish("a", {}, Json("x\n\ndata: y\r\n"));
  BOOST_TEST(reader->events() == "10:a");
}

BOOST_FIXTURE_TEST_CASE(who_comes_back_misses_nothing_or_is_told, Log) {
  for (const char* type : {"a", "b", "c", "d"}) publish(type);  // 10 to 13; 10 is not kept
  BOOST_TEST(follow(13)->events() == "");
  BOOST_TEST(follow(12)->events() == "13:d");
  BOOST_TEST(follow(10)->events() == "11:b 12:c 13:d");
  BOOST_TEST(follow(0)->events() == "11:b 12:c 13:d");
  BOOST_TEST(follow(9)->events() == "lost 11:b 12:c 13:d");
  BOOST_TEST(follow(9)->text.starts_with("event: lost\ndata: {\"after\":9,\"next\":11}\n\n"));
  BOOST_TEST(follow(14)->events() == "lost 11:b 12:c 13:d");  // of another server
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_limited_in_bytes) {
  EventLog log(1, 1000, 100);
  for (int i = 0; i < 50; ++i) log.publish("a", {}, Json::object());
  const auto reader = std::make_shared<Kept>();
  log.follow(reader, 0, "");
  BOOST_TEST(reader->text.size() <= 100u);
  BOOST_TEST(reader->events().ends_with("50:a"));
}

BOOST_FIXTURE_TEST_CASE(the_events_of_one_job_end_with_it, Log) {
  publish("a", "x");
  const auto of_x = follow(0, "x"), all = follow(0);
  publish("b", "y", true);
  publish("c", "x");
  publish("d", "x", true);
  publish("e", "x");
  BOOST_TEST(of_x->events() == "10:a 12:c 13:d");
  BOOST_TEST(of_x->is_closed);
  BOOST_TEST(all->events() == "10:a 11:b 12:c 13:d 14:e");
  BOOST_TEST(!all->is_closed);
}

BOOST_FIXTURE_TEST_CASE(whoever_has_gone_is_forgotten, Log) {
  const auto gone = follow({}), closed = follow({});
  BOOST_TEST(log.readers() == 2u);
  gone->is_there = false;
  log.close(closed, "1", Json::object());
  BOOST_TEST(log.readers() == 0u);
  BOOST_TEST(closed->is_closed);
  publish("a");
  BOOST_TEST(log.readers() == 0u);
  BOOST_TEST(gone->text == "");
  BOOST_TEST(closed->text == "id: 9\nevent: job\ndata: {}\n\n");
}

BOOST_AUTO_TEST_SUITE_END()
