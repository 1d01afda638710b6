// A run that is placed again goes on from what it had finished, though the output cache kept
// nothing of it.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

struct RetryFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  std::string path;

  RetryFixture() {
    path = folder.write("layers.safetensors", test::LayersFile{"layers", 24, 3}.bytes()).string();
  }
  static EngineOptions options() {
    EngineOptions options = test::fake_engine_options({"fake:0", "fake:1", "fake:2"});
    options.compute = {{"fake", "f32"}};
    options.cache_bytes = 1;  // nothing is kept
    return options;
  }
  // Two loops, one after the other; each with a hint, as JSON.
  std::string flow(const std::string& first, const std::string& second) const {
    const auto loop = [](const std::string& hint, const std::string& x) {
      return "{" + hint + R"("class_type": "test.loop", "inputs": {"model": ["load", 0], "x": [")" +
             x + R"(", 0], "steps": 2}})";
    };
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", ("{" + first + R"("class_type": "test.ramp", "inputs": {"count": 24}})").c_str()},
         {"first", loop(first, "x").c_str()},
         {"second", loop(second, "first").c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["second", 0]}})"}});
  }
  struct Done {
    std::vector<float> values;
    std::map<std::string, std::vector<std::string>> devices;  // of each start, by node
    std::set<std::string> found;                              // nodes that were not computed
    std::string error;
  };
  static Done run(Engine& engine, const std::string& json,
                  std::function<void(const Event&)> more = {}) {
    Done done;
    std::mutex mutex;
    const auto observe = [&](const Event& event) {
      {
        const std::lock_guard lock(mutex);
        if (event.kind == Event::Kind::node_started)
          done.devices[std::string(event.node)].emplace_back(event.device);
        if (event.kind == Event::Kind::node_cached) done.found.emplace(event.node);
      }
      if (more) more(event);
    };
    try {
      done.values = engine.start(engine.parse(json), {.observer = observe, .fetch = {"keep.out"}})
                        .wait()
                        .floats("keep.out");
    } catch (const EngineError& error) {
      done.error = error.what();
    }
    return done;
  }
  static constexpr const char* kFirst = R"("device": "fake:0", )";
  static constexpr const char* kSecond = R"("device": "fake:1", )";
  static constexpr const char* kRatherFirst = R"("prefer": "fake:0", )";
  static constexpr const char* kRatherSecond = R"("prefer": "fake:1", )";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(retry, RetryFixture)

BOOST_AUTO_TEST_CASE(a_run_whose_device_failed_goes_on_from_its_last_finished_node) {
  Engine engine(options());
  const std::string json = flow(kFirst, kRatherSecond);
  const Done good = run(engine, json);
  BOOST_TEST(good.error == "");
  BOOST_TEST((good.devices.at("second") == std::vector<std::string>{"fake:1"}));
  const std::uint64_t launches = control->launches(1, nullptr);
  control->fail_launch(1, launches / 2);
  const Done moved = run(engine, json);
  BOOST_TEST(moved.error == "");
  BOOST_TEST((moved.values == good.values));
  // What lay on a device that is well was not computed again.
  BOOST_TEST((moved.devices.at("first") == std::vector<std::string>{"fake:0"}));
  BOOST_TEST(moved.found.contains("first"));
  BOOST_TEST(!moved.found.contains("second"));
  BOOST_TEST(moved.devices.at("second").size() == 2u);
  BOOST_TEST(moved.devices.at("second").front() == "fake:1");
  BOOST_TEST(moved.devices.at("second").back() != "fake:1");
}

BOOST_AUTO_TEST_CASE(what_was_made_on_the_device_that_failed_is_computed_again) {
  Engine engine(options());
  const std::string json = flow(kRatherFirst, kRatherFirst);
  const Done good = run(engine, json);
  control->reset();
  const Done again = run(engine, json);
  const std::uint64_t launches = control->launches(0, nullptr);
  BOOST_TEST((again.values == good.values));
  control->fail_launch(0, launches - 1);  // of the second loop
  const Done moved = run(engine, json);
  BOOST_TEST(moved.error == "");
  BOOST_TEST((moved.values == good.values));
  BOOST_TEST(moved.devices.at("first").size() == 2u);
  BOOST_TEST(moved.devices.at("first").back() != "fake:0");
}

// The device dies while it has the only copy that anybody reads.
BOOST_AUTO_TEST_CASE(a_value_of_which_only_the_copy_was_read_is_still_there) {
  Engine engine(options());
  const std::string json = flow(kFirst, kRatherSecond);
  const Done good = run(engine, json);
  int steps = 0;
  const Done moved = run(engine, json, [&](const Event& event) {
    if (event.kind == Event::Kind::node_progress && event.node == "second" && ++steps == 1)
      control->kill(1);
  });
  control->revive(1);
  BOOST_TEST(moved.error == "");
  BOOST_TEST((moved.values == good.values));
  BOOST_TEST(moved.devices.at("first").size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_try_of_a_run_that_is_traced_has_a_timeline) {
  Engine engine(options());
  control->fail_launch(0, 3);
  const std::filesystem::path trace = folder / "trace.json";
  engine.start(engine.parse(flow(kRatherFirst, kRatherFirst)), {.trace = trace}).wait();
  for (const auto& [name, device] :
       {std::pair("trace.try1.json", "fake:0"), std::pair("trace.json", "fake:1")}) {
    std::ifstream file(folder / name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    BOOST_TEST(text.find(device) != std::string::npos, name << ": " << text.substr(0, 200));
  }
}

BOOST_AUTO_TEST_CASE(with_nowhere_else_to_go_the_first_failure_is_told_and_nothing_is_held) {
  Engine engine(options());
  const std::string json = flow(kFirst, kSecond);
  const Done good = run(engine, json);
  const std::uint64_t before = control->used_bytes(0);
  control->fail_launch(1, 2);
  const Done failed = run(engine, json);
  BOOST_TEST(failed.error.find("a test asked for it") != std::string::npos, failed.error);
  BOOST_TEST(control->used_bytes(0) == before);
  BOOST_TEST((run(engine, json).values == good.values));
}

BOOST_AUTO_TEST_SUITE_END()
