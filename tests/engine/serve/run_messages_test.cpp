#include "engine/serve/run_messages.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "engine/serve/preview_image.h"

using namespace heddle;
using namespace heddle::engine;

namespace {

// Keeps what a client would get.
class KeptSocket : public WebSocket {
 public:
  void send_text(Message text) override { texts.push_back(parse_json(text->content(), "message")); }
  void send_binary(Message bytes, bool may_drop) override {
    (may_drop ? binaries : kept).push_back(bytes->content());
  }
  void close() override {}
  std::vector<Json> texts;
  std::vector<std::string> binaries, kept;  // kept: that are never left out
};

struct OneRun {
  Clients clients{{[](const std::string&, const Caller&) { return std::vector<Json>{}; },
                   [] { return Json::object(); }}};
  std::shared_ptr<KeptSocket> plain = std::make_shared<KeptSocket>(),
                              knowing = std::make_shared<KeptSocket>();
  WebSocketEvents of_plain = clients.connect("plain", operator_caller(), plain);
  WebSocketEvents of_knowing = clients.connect("knowing", operator_caller(), knowing);
  Json prompt = parse_json("{\"1\": {\"class_type\": \"A\", \"inputs\": {}}}", "prompt");
  OneRun() {
    of_knowing.received(
        "{\"type\": \"feature_flags\", \"data\": {\"supports_preview_metadata\": true}}", true);
    knowing->texts.clear();
  }
  RunMessages messages(const std::string& client) {
    Job job;
    job.id = "p";
    job.client = client;
    job.targets = "[\"1\"]";
    return {job, prompt, clients, [] { return std::int64_t{42}; }};
  }
};

heddle::Event event(heddle::Event::Kind kind, std::string_view node = "1") {
  heddle::Event made{};
  made.kind = kind;
  made.node = made.display_node = made.real_node = node;
  made.class_type = "A";
  return made;
}

std::string types(const KeptSocket& socket) {
  std::vector<std::string> names;
  for (const Json& text : socket.texts) names.push_back(text.at("type").as_string());
  return join(names, " ");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(run_messages)

BOOST_AUTO_TEST_CASE(shares_are_steps_of_so_many) {
  for (const int most : {1, 2, 3, 4, 7, 20, 30, 97, 1000, 1001, 4999, 10000}) {
    StepCounter counter;
    BOOST_TEST(counter.step_of(0).value == 0);
    for (int i = 1; i <= most; ++i) {
      const StepCounter::Step step = counter.step_of(double(i) / most);
      BOOST_TEST(step.value == i);
      BOOST_TEST(step.most == most);
    }
  }
  StepCounter odd;
  BOOST_TEST(odd.step_of(0.1234567).most == 100);  // of nothing that is counted
  BOOST_TEST(odd.step_of(0.1234567).value == 12);
  BOOST_TEST(odd.step_of(7).value == odd.step_of(1).most);
}

BOOST_AUTO_TEST_CASE(a_picture_comes_with_what_a_client_wants_to_know) {
  OneRun run;
  const std::uint8_t pixels[2 * 1 * 3] = {255, 0, 0, 0, 0, 255};
  const heddle::Preview picture{2, 1, 1, 4, pixels};
  heddle::Event shown = event(heddle::Event::Kind::preview);
  shown.preview = &picture;
  run.messages("plain").take(shown);
  BOOST_TEST_REQUIRE(run.plain->binaries.size() == 1u);
  const std::string plain = run.plain->binaries[0];
  BOOST_TEST((plain.substr(0, 8) == std::string("\0\0\0\1\0\0\0\1", 8)));
  BOOST_TEST((plain.substr(8, 3) == "\xff\xd8\xff"));  // a JPEG
  BOOST_TEST(run.knowing->binaries.empty());

  run.messages("knowing").take(shown);
  const std::string& whole = run.knowing->binaries.at(0);
  BOOST_TEST((whole.substr(0, 4) == std::string("\0\0\0\4", 4)));
  std::size_t size = 0;
  for (int i = 4; i < 8; ++i) size = size << 8 | std::uint8_t(whole[std::size_t(i)]);
  BOOST_TEST(whole.substr(8, size) ==
             "{\"prompt_id\":\"p\",\"node_id\":\"1\",\"display_node_id\":\"1\",\"parent_node_id\":"
             "null,\"real_node_id\":\"1\",\"image_type\":\"image/jpeg\"}");
  BOOST_TEST((whole.substr(8 + size) == plain.substr(8)));

  run.messages("").take(shown);  // nobody's: to all, as frame 1
  BOOST_TEST((run.plain->binaries.at(1) == plain));
  BOOST_TEST((run.knowing->binaries.at(1) == plain));
}

// As SaveImageWebsocket sends it. Whoever is slow gets it all the same.
BOOST_AUTO_TEST_CASE(a_picture_that_is_sent_comes_whole_as_a_png) {
  OneRun run;
  heddle::Event sent = event(heddle::Event::Kind::picture_sent);
  const std::string png("\x89PNG\r\n\x1a\n\0whole", 14);
  sent.text = png;
  run.messages("plain").take(sent);
  BOOST_TEST((run.plain->kept == std::vector{std::string("\0\0\0\1\0\0\0\2", 8) + png}));
  run.messages("knowing").take(sent);
  BOOST_TEST_REQUIRE(run.knowing->kept.size() == 1u);
  const std::string& whole = run.knowing->kept[0];
  BOOST_TEST((whole.substr(0, 4) == std::string("\0\0\0\4", 4)));
  BOOST_TEST(whole.find("\"real_node_id\":\"1\",\"image_type\":\"image/png\"}") != whole.npos);
  BOOST_TEST(whole.ends_with(png));
  BOOST_TEST(run.plain->binaries.empty());
  BOOST_TEST(run.knowing->binaries.empty());
}

BOOST_AUTO_TEST_CASE(only_true_announces_previews_with_their_nodes) {
  OneRun run;
  const std::uint8_t pixels[3] = {255, 0, 0};
  const heddle::Preview picture{1, 1, 1, 4, pixels};
  heddle::Event shown = event(heddle::Event::Kind::preview);
  shown.preview = &picture;
  for (const char* value : {"1", "\"true\"", "null", "false"}) {
    const auto socket = std::make_shared<KeptSocket>();
    const WebSocketEvents events = run.clients.connect(value, operator_caller(), socket);
    events.received(cat("{\"type\": \"feature_flags\", \"data\": ",
                        "{\"supports_preview_metadata\": ", value, "}}"),
                    true);
    run.messages(value).take(shown);
    BOOST_TEST_REQUIRE(socket->binaries.size() == 1u, value);
    BOOST_TEST(int(socket->binaries[0][3]) == 1, value);
  }
}

BOOST_AUTO_TEST_CASE(pictures_are_scaled_to_one_size) {
  const std::uint8_t pixels[2 * 1 * 3] = {0, 10, 20, 100, 110, 120};
  const RgbPicture up = scaled(pixels, 2, 1, 8);
  BOOST_TEST(up.width == 8u);
  BOOST_TEST(up.height == 4u);
  BOOST_TEST(up.pixels.size() == 8u * 4 * 3);
  for (std::size_t x = 0; x < 8; ++x) {  // every row is the same
    const double at = std::clamp((double(x) + 0.5) / 4 - 0.5, 0.0, 1.0);
    for (std::size_t y = 0; y < 4; ++y)
      BOOST_TEST(up.pixels[(y * 8 + x) * 3] == std::uint8_t(100 * at + 0.5));
  }
  BOOST_TEST(scaled(std::vector<std::uint8_t>(1000 * 30, 7).data(), 1000, 10, 512).height == 5u);
  BOOST_TEST(scaled(pixels, 0, 0, 512).pixels.empty());
}

// A bar does not move again when its node is done.
BOOST_AUTO_TEST_CASE(what_a_node_says_of_its_work_is_told_when_it_changes) {
  OneRun run;
  RunMessages messages = run.messages("plain"), of_nobody = run.messages("");
  heddle::Event progress = event(heddle::Event::Kind::node_progress);
  messages.take(event(heddle::Event::Kind::node_started));
  for (const char* text : {"", "tiles", "tiles", "rows"}) {
    progress.text = text;
    messages.take(progress);
  }
  const std::string head("\0\0\0\x03\0\0\0\x01", 8);
  BOOST_TEST(run.plain->binaries == (std::vector<std::string>{head + "1tiles", head + "1rows"}));
  BOOST_TEST(run.knowing->binaries.empty());
  of_nobody.take(event(heddle::Event::Kind::node_started));
  of_nobody.take(progress);
  BOOST_TEST(run.knowing->binaries == std::vector<std::string>{head + "1rows"});
}

BOOST_AUTO_TEST_CASE(what_a_run_has_shown_before_it_went_on_is_kept) {
  OneRun run;
  RunMessages messages = run.messages("plain");
  heddle::Event shown = event(heddle::Event::Kind::node_shows);
  shown.text = "{\"text\": [\"new\"]}";
  messages.take(shown);
  messages.add_shown("{\"1\": {\"text\": [\"old\"]}, \"2\": {\"text\": [\"old\"]}}");
  const Json outputs = parse_json(messages.succeed().outputs, "outputs");
  BOOST_TEST(outputs.at("1").at("text").at(0).as_string() == "new");
  BOOST_TEST(outputs.at("2").at("text").at(0).as_string() == "old");
}

BOOST_AUTO_TEST_CASE(late_progress_is_dropped) {
  OneRun run;
  RunMessages messages = run.messages("plain");
  messages.begin();
  messages.take(event(heddle::Event::Kind::node_started));
  messages.take(event(heddle::Event::Kind::node_done));
  run.plain->texts.clear();
  heddle::Event late = event(heddle::Event::Kind::node_progress);
  late.fraction = 0.5;
  messages.take(late);
  BOOST_TEST(types(*run.plain) == "");
}

BOOST_AUTO_TEST_CASE(a_blocker_is_told_and_is_no_failure) {
  OneRun run;
  RunMessages messages = run.messages("plain");
  messages.begin();
  messages.take(event(heddle::Event::Kind::node_started));
  run.plain->texts.clear();
  heddle::Event blocked = event(heddle::Event::Kind::node_blocked);
  blocked.text = "not today";
  messages.take(blocked);
  BOOST_TEST_REQUIRE(types(*run.plain) == "execution_error");
  const Json& data = run.plain->texts[0].at("data");
  BOOST_TEST(data.at("exception_type").as_string() == "ExecutionBlocked");
  BOOST_TEST(data.at("exception_message").as_string() == "Execution Blocked: not today");
  BOOST_TEST((data.find("timestamp") == nullptr));
  const JobOutcome outcome = messages.succeed();
  BOOST_TEST((outcome.state == JobState::done));
  BOOST_TEST(outcome.status.find("ExecutionBlocked") == std::string::npos);
  run.messages("").take(blocked);  // also where nobody asked
  BOOST_TEST(types(*run.knowing) == "execution_error");
}

// Of an expansion: what people see is the node that asked for it.
BOOST_AUTO_TEST_CASE(a_failure_of_an_expansion_is_of_its_node) {
  OneRun run;
  RunMessages messages = run.messages("plain");
  messages.begin();
  const heddle::EngineError error(int(Code::out_of_memory),
                                  {"run", "node '1', expanded into '1.0.0.a' (B)"}, "no room");
  const JobOutcome outcome = messages.fail(error);
  BOOST_TEST((outcome.state == JobState::failed));
  const Json& data = run.plain->texts.back().at("data");
  BOOST_TEST(data.at("node_id").as_string() == "1");
  BOOST_TEST(data.at("node_type").as_string() == "A");
  BOOST_TEST(data.at("exception_type").as_string() == "torch.OutOfMemoryError");
  BOOST_TEST(data.at("traceback").size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
