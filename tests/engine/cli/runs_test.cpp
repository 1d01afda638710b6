// All runs of one call over four fake devices: which are used, what is written under which name,
// what is told.
#include "engine/cli/runs.h"

#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

namespace heddle::cli {
namespace {

using test::TemporaryFolder;

// Keeps what it is told. A node of the class `gate` ends only when as many runs as `together` have
// begun one, and then the next so many.
class Listener final : public Reporter {
 public:
  Listener(std::string gate, std::size_t together) : gate_(std::move(gate)), together_(together) {}

  void run_begins(const RunHeading&) override {}
  void event(std::size_t run, const Event& event) override {
    std::unique_lock lock(mutex_);
    if (event.kind == Event::Kind::node_waiting) waited.insert(run);
    if (event.kind != Event::Kind::node_started || event.class_type != gate_) return;
    devices[run] = std::string(event.device);
    const std::size_t round = (++at_gate_ + together_ - 1) / together_;
    changed_.notify_all();
    // Long enough for any machine: a call that does not start them together fails, and does not
    // hang.
    const bool opened = changed_.wait_for(lock, std::chrono::seconds(60),
                                          [&] { return at_gate_ >= round * together_; });
    if (!opened) ++left_alone;
  }
  void run_done(const RunHeading& heading, const RunReport& report, double) override {
    reported.push_back(heading.number);
    for (const std::string& file : report.files) files.push_back(file);
  }
  void run_stopped(std::size_t run) override { stopped.push_back(run); }
  void message(std::string_view text) override { messages.emplace_back(text); }

  std::map<std::size_t, std::string> devices;  // by run: where its gate was
  std::set<std::size_t> waited;
  std::vector<std::size_t> reported, stopped;
  std::vector<std::string> files, messages;
  int left_alone = 0;

 private:
  const std::string gate_;
  const std::size_t together_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t at_gate_ = 0;
};

// Counts how often nodes of a class start. The first of them ends only when so many runs have
// begun.
class Counter final : public Reporter {
 public:
  Counter(std::string counted, std::size_t together)
      : counted_(std::move(counted)), together_(together) {}

  void run_begins(const RunHeading&) override {
    const std::lock_guard lock(mutex_);
    ++begun_;
    changed_.notify_all();
  }
  void event(std::size_t, const Event& event) override {
    std::unique_lock lock(mutex_);
    if (event.kind != Event::Kind::node_started || event.class_type != counted_) return;
    ++started;
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return begun_ >= together_; });
  }
  void run_done(const RunHeading&, const RunReport&, double) override { ++done; }
  void run_stopped(std::size_t) override {}
  void message(std::string_view) override {}

  int started = 0, done = 0;

 private:
  const std::string counted_;
  const std::size_t together_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t begun_ = 0;
};

struct Fixture {
  test::FakeControl control;
  TemporaryFolder folder;
  Output output;

  // Eight starts of three layers in a loop, each saved.
  std::string flow() {
    const std::string model =
        folder.write("layers.safetensors", test::LayersFile{"layers", 24, 3}.bytes()).string();
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + model + R"("}})").c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24, "start": 1}})"},
         {"loop",
          R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0]}})"},
         {"save", R"({"class_type": "test.save", "inputs": {"value": ["loop", 0]}})"}});
  }

  Request request(const std::string& flow, const std::string& set, unsigned devices) {
    Request request;
    request.flow = Workflow::parse(flow);
    request.settings.sets = {{set.substr(0, set.find('=')), set.substr(set.find('=') + 1),
                              Origin::command_line, "--set"}};
    std::vector<std::string> names;
    for (unsigned d = 0; d < devices; ++d) names.push_back("fake:" + std::to_string(d));
    request.settings.engine =
        test::fake_engine_options(names, R"({"op_seconds": {"linear": 1, "*": 0}})");
    request.settings.engine.output_dir = folder / ("output" + std::to_string(devices));
    return request;
  }

  std::string content(unsigned devices, int file) {
    std::ifstream stream(folder / ("output" + std::to_string(devices)) / std::to_string(file),
                         std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(runs, Fixture)

BOOST_AUTO_TEST_CASE(eight_runs_use_four_devices_evenly_and_write_what_one_device_writes) {
  const std::string text = flow();
  Listener one("test.loop", 1), four("test.loop", 4);
  BOOST_TEST(run_all(request(text, "x.start=1..8", 1), output, one) == kExitDone);
  const std::uint64_t alone = control->launches(0, "linear/1");
  BOOST_TEST(alone == 8u * 3 * 2);
  control->reset();
  BOOST_TEST(run_all(request(text, "x.start=1..8", 4), output, four) == kExitDone);
  BOOST_TEST(four.left_alone == 0);  // two times four began together
  for (unsigned d = 0; d < 4; ++d) BOOST_TEST(control->launches(d, "linear/1") == alone / 4);
  std::map<std::string, int> runs_on;
  for (const auto& [run, device] : four.devices) ++runs_on[device];
  BOOST_TEST(runs_on.size() == 4u);
  for (const auto& [device, count] : runs_on) BOOST_TEST(count == 2, device);
  BOOST_TEST((four.reported == std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  std::set<std::string> different;
  for (int file = 1; file <= 8; ++file) {
    BOOST_TEST(content(1, file).size() == 24 * sizeof(float));
    BOOST_TEST(content(4, file) == content(1, file));
    different.insert(content(4, file));
    BOOST_TEST(four.files.at(std::size_t(file - 1)) == (folder / "output4" / std::to_string(file)));
  }
  BOOST_TEST(different.size() == 8u);
}

BOOST_AUTO_TEST_CASE(what_the_runs_of_a_range_share_is_computed_once) {
  Counter counter("test.ramp", 4);
  BOOST_TEST(run_all(request(flow(), "loop.steps=1..4", 4), output, counter) == kExitDone);
  BOOST_TEST(counter.done == 4);
  BOOST_TEST(counter.started == 1);
}

BOOST_AUTO_TEST_CASE(on_one_device_no_run_begins_before_the_last_has_written) {
  Listener listener("test.loop", 1);
  BOOST_TEST(run_all(request(flow(), "x.start=1..4", 1), output, listener) == kExitDone);
  BOOST_TEST(listener.waited.empty());
}

BOOST_AUTO_TEST_CASE(a_run_that_fails_is_told_in_its_place_and_the_others_go_on) {
  Listener listener("test.loop", 1);
  const Request some = request(flow(), "x.count=[24,23,24]", 2);  // the layers take 24
  BOOST_TEST(run_all(some, output, listener) == kExitFailed);
  BOOST_TEST((listener.reported == std::vector<std::size_t>{1, 3}));
  BOOST_TEST((listener.stopped == std::vector<std::size_t>{2}));
  BOOST_TEST_REQUIRE(listener.messages.size() == 1u);
  BOOST_TEST(listener.messages[0].starts_with("run 2 of 3: x.count=23: node 'loop'"),
             listener.messages[0]);
  BOOST_TEST(listener.files.size() == 2u);
}

BOOST_AUTO_TEST_CASE(outputs_that_can_run_are_made_and_the_code_tells_of_the_others) {
  std::string text = flow();
  text.insert(text.rfind('}'), R"(, "bad": {"class_type": "test.save", "inputs": {}})");
  Listener listener("test.loop", 1);
  BOOST_TEST(run_all(request(text, "x.start=1", 1), output, listener) == kExitUsage);
  BOOST_TEST(listener.files.size() == 1u);
  BOOST_TEST_REQUIRE(listener.messages.size() == 2u);
  BOOST_TEST(
      listener.messages[0].find("node 'bad' (test.save), input 'value'") != std::string::npos,
      listener.messages[0]);
  BOOST_TEST(listener.messages[1] == "warning: only the outputs that need none of this are made");
  // Nothing is made where no output is right.
  const std::string link = R"("value": ["loop", 0])";
  text.replace(text.find(link), link.size(), "");
  Listener none("test.loop", 1);
  BOOST_TEST(run_all(request(text, "x.start=1", 1), output, none) == kExitUsage);
  BOOST_TEST(none.files.empty());
  BOOST_TEST(none.reported.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::cli
