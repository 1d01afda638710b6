// Devices that people name, disable, drain and use again, with runs under way. The fake driver
// counts what they hold.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>

#include "heddle/abi/base.h"
#include "heddle/engine.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr const char* kUuidOfOne = "fake-00000000-0000-0000-0000-000000000001";
constexpr const char* kAddressOfOne = "01:00.0";
constexpr std::chrono::milliseconds kAtOnce{0};

// A run that stands still before its model is called.
struct Stopped {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::promise<std::string> begun;
  std::set<std::string> devices;
  bool has_waited = false;
  std::promise<void> waits;

  Observer observer(bool stops = true) {
    return [this, stops](const Event& e) {
      if (e.kind == Event::Kind::run_waiting && !std::exchange(has_waited, true)) waits.set_value();
      if (e.kind != Event::Kind::node_started) return;
      if (e.device.starts_with("fake")) devices.emplace(e.device);
      if (e.node != "loop" || !stops) return;
      begun.set_value(std::string(e.device));
      opened.wait_for(std::chrono::minutes(2));
    };
  }
};

struct DeviceServiceFixture {
  static constexpr int kWide = 80;
  test::FakeControl control;
  test::TemporaryFolder folder;
  const test::LayersFile a{"a", kWide, 3}, b{"b", kWide, 3};
  double start = 0;

  DeviceServiceFixture() {
    for (const test::LayersFile& model : {a, b})
      folder.write(model.name + ".safetensors", model.bytes());
  }
  static EngineOptions options(std::vector<std::string> devices = {"fake:0", "fake:1"}) {
    return test::fake_engine_options(std::move(devices), R"({"memory": 1048576})");
  }
  Workflow flow(const Engine& engine, const test::LayersFile& model) const {
    const std::string path = (folder / (model.name + ".safetensors")).string();
    return engine.parse(test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"loop", R"({"class_type": "test.planned_loop",
                      "inputs": {"model": ["load", 0], "width": 80}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}}));
  }
  Run begin(Engine& engine, const test::LayersFile& model, Observer observer = {},
            const std::string& device = "") {
    Workflow workflow = flow(engine, model);
    if (!device.empty()) workflow.place("loop", device);
    return engine.start(workflow, {.observer = std::move(observer),
                                   .fetch = {"keep.out"},
                                   .inputs = {{"loop.start", start += 1}}});
  }
  std::string device_of(Engine& engine, const test::LayersFile& model,
                        const std::string& hint = "") {
    Stopped seen;
    Run run = begin(engine, model, seen.observer(false), hint);
    BOOST_TEST(model.gives(run.wait().floats("keep.out"), start));
    return seen.devices.empty() ? "" : *seen.devices.begin();
  }
  static DeviceInfo info(const Engine& engine, std::size_t device) {
    return engine.devices().at(device);
  }
  void check_holds_nothing(const Engine& engine, std::uint32_t device) const {
    BOOST_TEST(control->used_bytes(device) == 0u);
    BOOST_TEST(control->pinned_bytes(device) == 0u);
    BOOST_TEST(control->handles(device) == 0u);
    BOOST_TEST(control->contexts(device) == 0u);
    BOOST_TEST(info(engine, device).memory.taken == 0u);
    BOOST_TEST(info(engine, device).memory.held.empty());
    BOOST_TEST(!info(engine, device).has_context);
  }
};

template <class F>
std::string refusal(F&& body) {
  try {
    body();
  } catch (const EngineError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(device_service, DeviceServiceFixture)

BOOST_AUTO_TEST_CASE(devices_are_named_by_kind_ordinal_uuid_and_pci_address_wherever_they_are) {
  EngineOptions o = options({kUuidOfOne, "00000000:03:00.0", "fake:0"});
  o.budgets[kAddressOfOne] = std::uint64_t{500'000};
  o.compute[kUuidOfOne] = "f32";
  Engine engine(o);
  const std::vector<DeviceInfo> devices = engine.devices();
  BOOST_REQUIRE(devices.size() == 3u);
  BOOST_TEST(devices[0].id == "fake:1");
  BOOST_TEST(devices[1].id == "fake:3");
  BOOST_TEST(devices[2].id == "fake:0");
  BOOST_TEST(devices[0].memory.budget == 500'000u);
  BOOST_TEST(devices[1].memory.budget == 0u);
  BOOST_TEST(devices[0].uuid == "FAKE-00000000-0000-0000-0000-000000000001");
  BOOST_TEST(devices[0].pci_address == "0000:01:00.0");
  BOOST_TEST(device_of(engine, a, kUuidOfOne) == "fake:1");
  BOOST_TEST(device_of(engine, a, "0000:03:00.0") == "fake:3");
  BOOST_TEST(device_of(engine, a, "auto") != "");
  engine.unload(kAddressOfOne);
  const std::string text = refusal([&] { device_of(engine, a, "0000:09:00.0"); });
  BOOST_TEST(text.find("there is no device '0000:09:00.0'") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(auto_is_every_device_of_the_best_kind) {
  EngineOptions o = options({"auto"});
  o.device_options["fake"] = R"({"count": 3})";
  BOOST_TEST(Engine(o).devices().size() == 3u);
  o.devices = {"auto", "cpu"};
  const std::vector<DeviceInfo> devices = Engine(o).devices();
  BOOST_REQUIRE(devices.size() == 4u);
  BOOST_TEST(devices[3].id == "cpu:0");
}

BOOST_AUTO_TEST_CASE(a_budget_of_the_workflow_is_for_the_device_that_it_names_in_any_way) {
  Engine engine(options());
  Workflow placed = flow(engine, a);
  placed.place("loop", "fake:1");
  const std::string nodes = placed.text();
  const auto plan = [&](const std::string& device) {
    return engine.plan(engine.parse(R"({"prompt": )" + nodes + R"(, "devices": {")" + device +
                                    R"(": {"budget": "400KB"}}})"));
  };
  for (const char* name : {"fake:1", kUuidOfOne, kAddressOfOne}) {
    const std::string text = plan(name);
    BOOST_TEST(text.find("75.9 KiB of 390.6 KiB on fake:1") != std::string::npos, text);
  }
  const std::string text = refusal([&] { plan("fake:7"); });
  BOOST_TEST(text.find("'fake:7', which is not among the devices used") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_device_holds_nothing_of_its_driver_before_its_first_work) {
  Engine engine(options());
  engine.plan(flow(engine, a));
  for (const std::uint32_t d : {0u, 1u}) {
    BOOST_TEST(control->contexts_made(d) == 0u);
    BOOST_TEST(control->handles(d) == 0u);
  }
  BOOST_TEST(device_of(engine, a, "fake:0") == "fake:0");
  BOOST_TEST(control->contexts(0) == 1u);
  BOOST_TEST(control->contexts_made(1) == 0u);
  BOOST_TEST(info(engine, 0).has_context);
  BOOST_TEST(!info(engine, 1).has_context);
}

BOOST_AUTO_TEST_CASE(a_disabled_device_gets_nothing_new_until_it_is_enabled) {
  Engine engine(options());
  BOOST_TEST(device_of(engine, a) == "fake:0");
  engine.disable("fake:0");
  BOOST_TEST(info(engine, 0).service == "disabled");
  BOOST_TEST(device_of(engine, a) == "fake:1");
  const std::string hinted = refusal([&] { device_of(engine, a, "fake:0"); });
  BOOST_TEST(hinted.find("fake:0 is left out: it is disabled") != std::string::npos, hinted);
  engine.disable(kUuidOfOne);
  const std::string none = refusal([&] { device_of(engine, a); });
  BOOST_TEST(none.find("no device is left to run on") != std::string::npos, none);
  BOOST_TEST(info(engine, 0).memory_ours > 0u);  // its weights stay
  engine.enable("fake");
  BOOST_TEST(info(engine, 0).service == "enabled");
  BOOST_TEST(device_of(engine, a) == "fake:0");
  const std::string unknown = refusal([&] { engine.disable("fake:9"); });
  BOOST_TEST(
      unknown.find("there is no device 'fake:9'; there are: fake:0, fake:1") != std::string::npos,
      unknown);
}

BOOST_AUTO_TEST_CASE(a_drained_device_finishes_its_nodes_and_gives_back_all_that_it_held) {
  Engine engine(options());
  Stopped one;
  Run run = begin(engine, a, one.observer());
  BOOST_TEST(test::given(one.begun.get_future(), "the begin of the loop") == "fake:0");
  BOOST_TEST(!engine.drain("fake:0", kAtOnce));
  BOOST_TEST(info(engine, 0).service == "draining");
  BOOST_TEST(device_of(engine, b) == "fake:1");  // others go elsewhere meanwhile
  one.open.set_value();
  BOOST_TEST(a.gives(run.wait().floats("keep.out"), 1));
  BOOST_TEST(one.devices == std::set<std::string>{"fake:0"}, boost::test_tools::per_element());
  BOOST_TEST(engine.drain("fake:0"));
  BOOST_TEST(info(engine, 0).service == "drained");
  check_holds_nothing(engine, 0);
  BOOST_TEST(control->contexts(1) == 1u);
  BOOST_TEST(control->used_bytes(1) > 0u);
  BOOST_TEST(device_of(engine, a) == "fake:1");
  engine.enable("fake:0");
  BOOST_TEST(device_of(engine, a, "fake:0") == "fake:0");
  BOOST_TEST(control->contexts_made(0) == 2u);
  BOOST_TEST(control->freed_in_use(0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_device_that_nobody_waits_for_is_drained_by_its_last_run) {
  Engine engine(options());
  Stopped one, two;
  Run first = begin(engine, a, one.observer(), "fake:0");
  test::given(one.begun.get_future(), "the begin of the loop");
  Run second = begin(engine, a, two.observer(), "fake:0");
  test::given(two.begun.get_future(), "the begin of the loop");
  BOOST_TEST(!engine.drain("fake:0", kAtOnce));
  one.open.set_value();
  first.wait();
  BOOST_TEST(info(engine, 0).service == "draining");
  two.open.set_value();
  BOOST_TEST(a.gives(second.wait().floats("keep.out"), 2));
  BOOST_TEST(info(engine, 0).service == "drained");
  check_holds_nothing(engine, 0);
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_for_a_device_is_planned_again_when_that_is_drained) {
  EngineOptions o = options();
  o.budgets["fake"] = 2 * std::uint64_t{3} * kWide * kWide * sizeof(float);
  o.reserves["fake"] = std::uint64_t{0};
  Engine engine(o);
  engine.disable("fake:1");
  Stopped one, two;
  Run first = begin(engine, a, one.observer());
  test::given(one.begun.get_future(), "the begin of the loop");
  Run second = begin(engine, b, two.observer(false));  // has no room beside it
  test::given(two.waits.get_future(), "the wait of the second run");
  engine.enable("fake:1");
  BOOST_TEST(!engine.drain("fake:0", kAtOnce));
  one.open.set_value();
  BOOST_TEST(a.gives(first.wait().floats("keep.out"), 1));
  BOOST_TEST(b.gives(second.wait().floats("keep.out"), 2));
  BOOST_TEST(two.devices == std::set<std::string>{"fake:1"}, boost::test_tools::per_element());
  BOOST_TEST(engine.drain("fake:0"));
  check_holds_nothing(engine, 0);
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_lets_a_drained_device_go) {
  Engine engine(options());
  Stopped one;
  Run run = begin(engine, a, one.observer(), "fake:0");
  test::given(one.begun.get_future(), "the begin of the loop");
  BOOST_TEST(!engine.drain("fake:0", kAtOnce));
  run.cancel();
  one.open.set_value();
  BOOST_CHECK_THROW(run.wait(), EngineError);
  BOOST_TEST(engine.drain("fake:0"));
  check_holds_nothing(engine, 0);
}

BOOST_AUTO_TEST_CASE(the_c_interface_disables_drains_and_enables) {
  const std::string plugins = HEDDLE_PLUGINS_DIR;
  const char* devices[] = {"fake:0", kUuidOfOne};
  const char* more[] = {test::kFakePlugin};
  const heddle_option of_fake[] = {{"fake", R"({"memory": 1048576})"}};
  heddle_engine_options o{};
  o.size = sizeof o;
  o.default_plugin_dir = plugins.c_str();
  o.plugin_dirs = more;
  o.plugin_dir_count = 1;
  o.devices = devices;
  o.device_count = 2;
  o.device_options = of_fake;
  o.device_option_count = 1;
  heddle_engine* engine = nullptr;
  char* text = nullptr;
  BOOST_REQUIRE(heddle_engine_make(&o, &engine, &text) == 0);
  BOOST_TEST(heddle_engine_disable(engine, kAddressOfOne, &text) == 0);
  BOOST_REQUIRE(heddle_engine_devices(engine, &text, nullptr) == 0);
  BOOST_TEST(std::string(text).find(R"("service":"disabled")") != std::string::npos, text);
  heddle_text_free(text);
  BOOST_TEST(heddle_engine_drain(engine, "fake", -1, &text) == 0);
  BOOST_TEST(heddle_engine_enable(engine, "fake:1", &text) == 0);
  BOOST_TEST(heddle_engine_drain(engine, "gpu:1", -1, &text) == HEDDLE_NOT_FOUND);
  BOOST_TEST(std::string(text) == "there is no device 'gpu:1'; there are: fake:0, fake:1");
  heddle_text_free(text);
  heddle_engine_free(engine);
}

BOOST_AUTO_TEST_SUITE_END()
