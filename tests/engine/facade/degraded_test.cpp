// Devices that fail in runs of an engine: they are left out after a while, probed and used again;
// everything else goes on. Time is simulated.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <set>
#include <thread>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Outcome {
  std::vector<float> values;
  std::set<std::string> devices;  // of nodes that are not the host's
  std::string error;
};

struct DegradedDevicesFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  std::string path;
  std::atomic<double> now{0};
  std::mutex mutex;
  std::vector<std::string> logged;

  DegradedDevicesFixture() {
    path = folder.write("layers.safetensors", test::LayersFile{"layers", 24, 3}.bytes()).string();
  }

  EngineOptions options(std::vector<std::string> devices = {"fake:0", "fake:1"}) {
    EngineOptions options = test::fake_engine_options(std::move(devices));
    options.compute = {{"fake", "f32"}};
    options.cache_bytes = 1;  // every run computes
    options.clock = [this] { return now.load(); };
    options.log = [this](int, std::string_view message) {
      const std::lock_guard lock(mutex);
      logged.emplace_back(message);
    };
    return options;
  }

  // `hint` as JSON behind the class of the node that calls the model.
  std::string flow(const std::string& hint = "", int steps = 2) const {
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", ("{" + hint + R"("class_type": "test.ramp", "inputs": {"count": 24}})").c_str()},
         {"loop",
          ("{" + hint +
           R"("class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": )" +
           std::to_string(steps) + "}}")
              .c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }
  Outcome run(Engine& engine, const std::string& json) const {
    Outcome outcome;
    try {
      const auto notify = [&](const Event& e) {
        if (e.kind == Event::Kind::node_started && e.device.starts_with("fake"))
          outcome.devices.emplace(e.device);
      };
      outcome.values =
          engine.start(engine.parse(json), {notify, {"keep.out"}}).wait().floats("keep.out");
    } catch (const EngineError& error) {
      outcome.error = error.what();
    }
    return outcome;
  }
  // A run that may go nowhere else fails with its device.
  static constexpr const char* kOnFirst = R"("device": "fake:0", )";
  // The next three runs find a device that fails once in each of them.
  void degrade_first(Engine& engine) const {
    for (int i = 0; i < 3; ++i) {
      control->fail_launch(0, 1);
      const Outcome failed = run(engine, flow(kOnFirst));
      BOOST_TEST(contains(failed.error, "fake:0"), failed.error);
      BOOST_TEST(contains(failed.error, "node 'loop'"), failed.error);
      BOOST_TEST(contains(failed.error, "a test asked for it"), failed.error);
      BOOST_TEST(failed.devices == std::set<std::string>{"fake:0"},
                 boost::test_tools::per_element());
    }
  }
};

const std::set<std::string> kFirst{"fake:0"}, kSecond{"fake:1"};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(degraded_devices, DegradedDevicesFixture)

BOOST_AUTO_TEST_CASE(a_run_whose_device_fails_begins_again_on_what_is_left) {
  Engine engine(options());
  const Outcome good = run(engine, flow());
  control->fail_launch(0, 1);
  const Outcome moved = run(engine, flow());
  BOOST_TEST(moved.error == "");
  BOOST_TEST(moved.values == good.values, boost::test_tools::per_element());
  BOOST_TEST(moved.devices == (std::set<std::string>{"fake:0", "fake:1"}),
             boost::test_tools::per_element());
  // Where both fail it there is nothing left.
  control->fail_launch(0, 1);
  control->fail_launch(1, 1);
  BOOST_TEST(contains(run(engine, flow()).error, "a test asked for it"));
  BOOST_TEST(run(engine, flow()).values == good.values, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(
    a_device_that_fails_three_times_is_left_out_for_a_minute_and_probed_before_it_is_used_again) {
  Engine engine(options());
  const Outcome good = run(engine, flow());
  BOOST_TEST(good.error == "");
  BOOST_TEST(good.devices == kFirst, boost::test_tools::per_element());
  degrade_first(engine);
  BOOST_TEST(std::ranges::count_if(logged, [](const std::string& line) {
               return contains(line, "device fake:0 is left out: it failed 3 times in a row");
             }) == 1);

  now = 18;
  const std::string plan = engine.plan(engine.parse(flow()));
  BOOST_TEST(
      contains(plan,
               "warning: fake:0 is left out: it failed 3 times in a row, at last with \"fake:0: "),
      plan);
  BOOST_TEST(contains(plan, "it is probed again in 42 s"), plan);
  std::vector<DeviceInfo> devices = engine.devices();
  BOOST_TEST(devices[0].state == "degraded");
  BOOST_TEST(devices[0].failures == 3u);
  BOOST_TEST(devices[0].probe_seconds == 42);
  BOOST_TEST(contains(devices[0].last_failure, "a test asked for it"), devices[0].last_failure);
  BOOST_TEST(devices[1].state == "healthy");

  const std::uint64_t copies = control->copies(0);
  for (const double seconds : {18.0, 59.5}) {
    now = seconds;
    const Outcome meanwhile = run(engine, flow());
    BOOST_TEST(meanwhile.error == "");
    BOOST_TEST(meanwhile.devices == kSecond, boost::test_tools::per_element());
    BOOST_TEST(meanwhile.values == good.values, boost::test_tools::per_element());
  }
  BOOST_TEST(control->copies(0) == copies);  // nobody asked it

  now = 60;
  const Outcome again = run(engine, flow());
  BOOST_TEST(again.error == "");
  BOOST_TEST(again.devices == kFirst, boost::test_tools::per_element());
  BOOST_TEST(again.values == good.values, boost::test_tools::per_element());
  BOOST_TEST(engine.devices()[0].state == "healthy");
  BOOST_TEST(engine.devices()[0].failures == 0u);
  BOOST_TEST(!contains(engine.plan(engine.parse(flow())), "left out"));
}

BOOST_AUTO_TEST_CASE(a_device_that_is_still_dead_when_it_is_probed_is_left_out_for_another_minute) {
  Engine engine(options());
  const Outcome good = run(engine, flow());
  control->kill(0);
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(contains(run(engine, flow(kOnFirst)).error, "the device has died"));
  for (const double seconds : {1.0, 60.0, 119.0}) {
    now = seconds;
    const Outcome meanwhile = run(engine, flow());
    BOOST_TEST(meanwhile.error == "");
    BOOST_TEST(meanwhile.devices == kSecond, boost::test_tools::per_element());
    BOOST_TEST(meanwhile.values == good.values, boost::test_tools::per_element());
    BOOST_TEST(engine.devices()[0].failures == (seconds < 60 ? 3u : 4u));
  }
  control->revive(0);
  BOOST_TEST(run(engine, flow()).devices == kSecond, boost::test_tools::per_element());
  now = 120;
  const Outcome again = run(engine, flow());
  BOOST_TEST(again.devices == kFirst, boost::test_tools::per_element());
  BOOST_TEST(again.values == good.values, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(failures_that_are_not_in_a_row_do_not_degrade) {
  Engine engine(options());
  for (int i = 0; i < 5; ++i) {
    control->fail_launch(0, 1);
    BOOST_TEST(run(engine, flow(kOnFirst)).error != "");
    BOOST_TEST(engine.devices()[0].failures == 1u);
    BOOST_TEST(run(engine, flow()).error == "");
    BOOST_TEST(engine.devices()[0].failures == 0u);
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_the_devices_fault_is_not_counted) {
  Engine engine(options());
  const std::string failing =
      test::workflow({{"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
                      {"y", R"({"class_type": "test.fail", "inputs": {}})"},
                      {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["y", 0]}})"},
                      {"kept", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}});
  control->set_foreign_bytes(0, std::uint64_t{1} << 50);
  for (int i = 0; i < 4; ++i) BOOST_TEST(contains(run(engine, flow()).error, "out of memory"));
  control->set_foreign_bytes(0, 0);
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(contains(run(engine, failing).error, "it was asked to fail"));
  BOOST_TEST(engine.devices()[0].failures == 0u);
  BOOST_TEST(run(engine, flow()).devices == kFirst, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_hint_for_a_device_that_is_left_out_is_refused_and_a_list_loses_it) {
  Engine engine(options());
  const Outcome good = run(engine, flow());
  degrade_first(engine);
  const std::string refusal = run(engine, flow(R"("device": "fake:0", )")).error;
  BOOST_TEST(contains(refusal, "fake:0 is left out: it failed 3 times in a row"), refusal);
  BOOST_TEST(contains(refusal, "a test asked for it"), refusal);
  BOOST_TEST(contains(refusal, "it is probed again in 60 s"), refusal);
  for (const char* hint :
       {R"("device": "fake:0,fake:1", )", R"("device": "fake", )", R"("prefer": "fake:0", )"}) {
    const Outcome outcome = run(engine, flow(hint));
    BOOST_TEST(outcome.error == "");
    BOOST_TEST(outcome.devices == kSecond, boost::test_tools::per_element());
    BOOST_TEST(outcome.values == good.values, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(runs_on_other_devices_go_on_while_one_dies) {
  Engine engine(options());
  const Outcome good = run(engine, flow("", 3));  // others than on the first: those are not shared
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0}, done{0};
  {
    std::vector<std::jthread> others;
    for (int t = 0; t < 2; ++t)
      others.emplace_back([&] {
        while (!over || done < 30) {
          const Outcome outcome = run(engine, flow(R"("device": "fake:1", )", 3));
          if (outcome.error != "" || outcome.values != good.values) ++wrong;
          ++done;
        }
      });
    const bool are_at_work = test::comes_about([&] { return done >= 4; });
    BOOST_TEST(are_at_work, "of the runs on the other device " << done << " have ended");
    control->kill(0);
    for (int i = 0; i < 3; ++i)
      BOOST_TEST(contains(run(engine, flow(R"("device": "fake:0", )")).error, "died"));
    BOOST_TEST(contains(run(engine, flow(R"("device": "fake:0", )")).error, "is left out"));
    over = true;
  }
  control->revive(0);
  BOOST_TEST(wrong == 0);
  BOOST_TEST(engine.devices()[1].failures == 0u);
}

BOOST_AUTO_TEST_CASE(what_a_device_held_when_it_died_is_made_again) {
  EngineOptions keeping = options();
  keeping.cache_bytes = 64 << 20;
  Engine engine(std::move(keeping)), reference(options());
  const Outcome two = run(engine, flow());
  const Outcome three = run(reference, flow("", 3));
  control->kill(0);
  BOOST_TEST(contains(run(engine, flow(kOnFirst, 3)).error, "died"));
  control->revive(0);
  const Outcome after = run(engine, flow("", 3));
  BOOST_TEST(after.error == "");
  BOOST_TEST(after.devices == kFirst, boost::test_tools::per_element());
  BOOST_TEST(after.values == three.values, boost::test_tools::per_element());
  BOOST_TEST(run(engine, flow()).values == two.values, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_engine_without_another_device_says_when_it_goes_on) {
  EngineOptions alone = options({"fake:0"});
  alone.degrade_after = 1;
  alone.degraded_seconds = 5;
  Engine engine(std::move(alone));
  control->fail_launch(0, 1);
  BOOST_TEST(contains(run(engine, flow()).error, "a test asked for it"));
  now = 3;
  const std::string refusal = run(engine, flow()).error;
  BOOST_TEST(contains(refusal,
                      "no device is left to run on: fake:0 is left out: it failed 1 time in a row"),
             refusal);
  BOOST_TEST(contains(refusal, "it is probed again in 2 s"), refusal);
  now = 5;
  BOOST_TEST(run(engine, flow()).error == "");
}

BOOST_AUTO_TEST_CASE(a_run_is_traced_beside_a_device_that_is_dead) {
  Engine engine(options());
  const Outcome good = run(engine, flow());
  control->kill(0);
  for (int i = 0; i < 3; ++i) BOOST_TEST(contains(run(engine, flow(kOnFirst)).error, "died"));
  StartOptions traced{{}, {"keep.out"}};
  traced.trace = folder.path() / "trace.json";
  BOOST_TEST(engine.start(engine.parse(flow()), traced).wait().floats("keep.out") == good.values,
             boost::test_tools::per_element());
  control->revive(0);
  BOOST_TEST(std::filesystem::file_size(traced.trace) > 100u);
}

BOOST_AUTO_TEST_CASE(a_device_that_fails_before_a_node_is_at_work_there_is_counted_too) {
  Engine engine(options());
  std::string apart = flow(R"("device": "fake:0", )");
  apart.replace(apart.rfind("fake:0"), 6, "fake:1");  // the loop, to which x is sent
  BOOST_TEST(run(engine, apart).devices == (std::set<std::string>{"fake:0", "fake:1"}),
             boost::test_tools::per_element());
  control->kill(1);
  for (unsigned i = 1; i <= 3; ++i) {
    BOOST_TEST(contains(run(engine, apart).error, "fake:1"));
    BOOST_TEST(engine.devices()[1].failures == i);
  }
  control->revive(1);
  BOOST_TEST(engine.devices()[1].state == "degraded");
  BOOST_TEST(engine.devices()[0].state == "healthy");
}

BOOST_AUTO_TEST_CASE(a_failure_of_a_run_that_is_traced_is_counted_once) {
  Engine engine(options());
  StartOptions traced{{}, {"keep.out"}};
  traced.trace = folder.path() / "trace.json";
  control->fail_launch(0, 1);
  BOOST_CHECK_THROW(engine.start(engine.parse(flow(kOnFirst)), traced).wait(), EngineError);
  BOOST_TEST(engine.devices()[0].failures == 1u);
  // A run that uses the device and fails for a reason of its own blames nobody.
  const std::string failing =
      test::workflow({{"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
                      {"kept", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"},
                      {"y", R"({"class_type": "test.fail", "inputs": {}})"},
                      {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["y", 0]}})"}});
  BOOST_TEST(contains(run(engine, failing).error, "it was asked to fail"));
  BOOST_TEST(engine.devices()[0].failures == 1u);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_full_when_it_is_probed_is_well) {
  Engine engine(options());
  degrade_first(engine);
  control->set_foreign_bytes(0, std::uint64_t{1} << 50);
  now = 60;
  run(engine, flow());
  control->set_foreign_bytes(0, 0);
  BOOST_TEST(engine.devices()[0].state == "healthy");
}

BOOST_AUTO_TEST_SUITE_END()
