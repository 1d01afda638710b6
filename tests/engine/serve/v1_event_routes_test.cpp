// GET /v1/events and GET /v1/jobs/{id}/events.
#include "tests/engine/serve/v1_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

struct StreamedEvent {
  std::string id, type;  // id: "" where it has none
  Json data;
};

class EventReader : public Connection {
 public:
  EventReader(std::uint16_t port, const std::string& target, const std::string& headers = "")
      : Connection(port) {
    send(cat("GET ", target, " HTTP/1.1\r\nHost: 127.0.0.1\r\n", headers, "\r\n"));
    head = read_reply();
  }
  // Nothing where the stream has ended. Comments are skipped.
  std::optional<StreamedEvent> next() {
    StreamedEvent event;
    for (std::string line = read_line(); !is_over_; line = read_line()) {
      if (line.empty() && !event.type.empty()) return event;
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("event: ")) event.type = line.substr(7);
      if (line.starts_with("data: ")) event.data = engine::parse_json(line.substr(6), "data");
    }
    return {};
  }
  std::vector<StreamedEvent> all() {
    std::vector<StreamedEvent> events;
    while (std::optional<StreamedEvent> event = next()) events.push_back(*std::move(event));
    return events;
  }
  Reply head;

 private:
  std::string read_line() {
    std::string line;
    while (!(is_over_ = !fill(1))) {
      const std::string c = take(1);
      if (c == "\n") break;
      line += c;
    }
    return line;
  }
  bool is_over_ = false;
};

// States of the job, and what else there is, but for progress.
std::string types_of(const std::vector<StreamedEvent>& events) {
  std::vector<std::string> types;
  for (const StreamedEvent& event : events)
    if (event.type != "node_progress")
      types.push_back(event.type == "job" ? event.data.at("state").as_string() : event.type);
  return engine::join(types, " ");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(v1_event_routes)

BOOST_FIXTURE_TEST_CASE(the_events_of_a_job_are_told_from_its_beginning_to_its_end, V1Serving) {
  expect(200, "POST", "/v1/queue/pause");
  const std::string id = submit_v1(showing(5));
  EventReader reader(port(), cat("/v1/jobs/", id, "/events"));
  expect(200, "POST", "/v1/queue/resume");
  BOOST_TEST(reader.head.status == 200);
  BOOST_TEST(reader.head.header("content-type") == "text/event-stream; charset=utf-8");
  BOOST_TEST(!reader.head.header("x-request-id").empty());
  const std::vector<StreamedEvent> events = reader.all();
  BOOST_TEST(types_of(events) ==
             "pending running node_started node_done node_started node_shows node_done done");
  for (const StreamedEvent& event : events) BOOST_TEST(event.data.at("job").as_string() == id);
  const std::size_t count = events.size();
  BOOST_TEST(engine::write_json(events[count - 3].data.at("shown")) == "{\"text\":[5]}");
  // The same afterwards, and only what came later.
  BOOST_TEST(types_of(EventReader(port(), cat("/v1/jobs/", id, "/events")).all()) ==
             types_of(events));
  EventReader later(port(), cat("/v1/jobs/", id, "/events?after=", events[count - 3].id));
  BOOST_TEST(types_of(later.all()) == "node_done done");
  EventReader again(port(), cat("/v1/jobs/", id, "/events?after=0"),
                    cat("Last-Event-ID: ", events[count - 2].id, "\r\n"));
  BOOST_TEST(types_of(again.all()) == "done");
}

BOOST_FIXTURE_TEST_CASE(whoever_follows_all_hears_of_every_change, V1Serving) {
  EventReader reader(port(), "/v1/events");
  wait_until([&] { return service->events().readers() == 1; });
  expect(200, "POST", "/v1/queue/pause");
  const std::optional<StreamedEvent> paused = reader.next();
  BOOST_TEST_REQUIRE(paused.has_value());
  BOOST_TEST(paused->type == "queue");
  BOOST_TEST(paused->data.at("is_paused").as_bool());
  const std::string id = submit_v1(showing(1), ", \"tag\": \"t\"");
  const std::optional<StreamedEvent> made = reader.next();
  BOOST_TEST(made->type == "job");
  BOOST_TEST(made->data.at("job").as_string() == id);
  BOOST_TEST(made->data.at("tag").as_string() == "t");
  BOOST_TEST(std::stoull(made->id) == std::stoull(paused->id) + 1);
  BOOST_TEST(reader.next()->data.at("pending").as_int64() == 1);
  expect(200, "POST", cat("/v1/jobs/", id, "/cancel"));
  BOOST_TEST(reader.next()->data.at("state").as_string() == "cancelled");
  BOOST_TEST(reader.next()->type == "queue");
  expect(204, "DELETE", "/v1/jobs/" + id);
  BOOST_TEST(reader.next()->data.at("state").as_string() == "deleted");
}

BOOST_FIXTURE_TEST_CASE(a_restart_is_told_as_a_loss, V1Serving) {
  const std::string id = submit_v1(showing(1));
  const std::string last = EventReader(port(), cat("/v1/jobs/", id, "/events")).all().back().id;
  service.reset();
  start();
  EventReader reader(port(), "/v1/events?after=" + last);
  BOOST_TEST(reader.next()->type == "lost");
  submit_v1(showing(1));
  BOOST_TEST(std::stoull(reader.next()->id) > std::stoull(last));
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_followed_is_refused, V1Serving) {
  BOOST_TEST(refused(404, "GET", "/v1/jobs/none/events") == "not_found");
  BOOST_TEST(refused(400, "GET", "/v1/events?after=x") == "invalid_argument");
  BOOST_TEST(EventReader(port(), "/v1/events", "Last-Event-ID: x\r\n").head.status == 400);
}

BOOST_AUTO_TEST_CASE(readers_are_limited) {
  V1Serving serving([](engine::ServiceOptions& options) { options.event_readers = 1; });
  const std::string id = serving.submit_v1(showing(1));
  serving.wait_for(id, "done");
  {
    EventReader first(serving.port(), "/v1/events");
    serving.wait_until([&] { return serving.service->events().readers() == 1; });
    const Reply refused = EventReader(serving.port(), "/v1/events").head;
    BOOST_TEST(refused.status == 503);
    BOOST_TEST(refused.header("retry-after") == "10");
    BOOST_TEST(EventReader(serving.port(), cat("/v1/jobs/", id, "/events")).head.status == 503);
  }
  // Whoever has gone makes room.
  serving.wait_until([&] { return serving.service->events().readers() == 0; });
  BOOST_TEST(EventReader(serving.port(), "/v1/events").head.status == 200);
}

BOOST_FIXTURE_TEST_CASE(a_service_ends_while_somebody_follows, V1Serving) {
  EventReader reader(port(), "/v1/events");
  wait_until([&] { return service->events().readers() == 1; });
  submit_v1(meeting(1, 2));
  service.reset();
  reader.all();
}

// A request whose result nobody wants any more; one that says nothing leaves its job alone.
BOOST_FIXTURE_TEST_CASE(a_job_is_cancelled_with_its_request_where_that_says_so, V1Serving) {
  const std::string stays = submit_v1(meeting(1, 3)), goes = submit_v1(meeting(2, 3));
  for (const std::string& id : {stays, goes}) wait_for(id, "running");
  const auto target = [](const std::string& id, const char* more) {
    return cat("/v1/jobs/", id, "/events", more);
  };
  BOOST_TEST(refused(400, "GET", target(goes, "?on_disconnect=wait")) == "invalid_argument");
  {
    EventReader plain(port(), target(stays, "")),
        first(port(), target(goes, "?on_disconnect=continue")),
        second(port(), target(goes, "?on_disconnect=cancel"));
    for (EventReader* reader : {&plain, &first, &second}) BOOST_TEST(reader->next().has_value());
  }
  wait_for(goes, "cancelled");
  BOOST_TEST(state(stays) == "running");
  // A server that ends is no client that has gone.
  EventReader last(port(), target(stays, "?on_disconnect=cancel"));
  BOOST_TEST(last.next().has_value());
  service.reset();
  start();
  for (int i : {3, 4}) submit_v1(meeting(i, 3));
  wait_for(stays, "done");
}

// A job that runs is followed to its end, and not cut off before that is told.
BOOST_FIXTURE_TEST_CASE(a_web_socket_follows_a_job_to_its_end, V1Serving) {
  const std::string id = submit_v1(meeting(1, 2));
  wait_until([&] { return state(id) == "running"; });
  SocketClient live(port(), cat("/v1/events?after=0&job=", id));
  submit_v1(meeting(2, 2));
  std::string last;
  for (Json event = live.read_json(); !event.is_null(); event = live.read_json()) {
    const Json* told = event.at("data").find("state");
    if (told != nullptr) last = told->as_string();
  }
  BOOST_TEST(last == "done");
}

// The same events with the same numbers, whichever way they come.
BOOST_FIXTURE_TEST_CASE(a_web_socket_follows_as_well, V1Serving) {
  SocketClient live(port(), "/v1/events");
  BOOST_TEST(live.reply.status == 101);
  live.send("nobody reads this");
  wait_until([&] { return service->events().readers() == 1; });
  const std::string id = submit_v1(showing(1));
  // To its end as the log tells it: the queue knows of that before.
  std::int64_t last = 0;
  bool has_ended = false, has_queue = false;
  while (!has_ended) {
    const Json event = live.read_json();
    BOOST_TEST_REQUIRE(!event.is_null());
    BOOST_TEST(event.at("id").as_int64() > last);
    last = event.at("id").as_int64();
    has_queue = has_queue || event.at("event").as_string() == "queue";
    const Json* state = event.at("data").find("state");
    has_ended = state != nullptr && state->as_string() == "done";
  }
  BOOST_TEST(has_queue);  // of all there are more events than of the job
  const std::vector<StreamedEvent> streamed =
      EventReader(port(), cat("/v1/jobs/", id, "/events")).all();
  SocketClient again(port(), cat("/v1/events?after=0&job=", id));
  for (const StreamedEvent& expected : streamed) {
    const Json event = again.read_json();
    BOOST_TEST(cat(event.at("id").as_int64()) == expected.id);
    BOOST_TEST(event.at("event").as_string() == expected.type);
    BOOST_TEST(engine::write_json(event.at("data")) == engine::write_json(expected.data));
  }
  BOOST_TEST(again.read_json().is_null());  // it has ended, and all was told
  SocketClient wrong(port(), "/v1/events?after=x");
  BOOST_TEST(wrong.read_json().is_null());
}

BOOST_AUTO_TEST_SUITE_END()
