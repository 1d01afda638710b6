// A device that fails while ten jobs run and wait: each is done, on the other one.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/service.h"
#include "tests/engine/serve/http_client.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;

BOOST_AUTO_TEST_SUITE(failed_device)

namespace {

constexpr int kWidth = 16, kJobs = 10;

// Holds a kernel of the device until the device is dead.
struct Gate {
  std::atomic<bool> is_reached = false, is_open = false;
  static void hold(void* self) {
    Gate& gate = *static_cast<Gate*>(self);
    gate.is_reached = true;
    test::comes_about([&] { return gate.is_open.load(); });
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(ten_jobs_go_on_where_a_device_fails) {
  engine::set_log_sink([](engine::Level, std::string_view) {});
  const test::FakeControl control;
  const test::TemporaryFolder folder;
  folder.write("a.safetensors", test::LayersFile{"a", kWidth, 3}.bytes());
  EngineOptions options = test::fake_engine_options({"fake:0", "fake:1"}, R"({"memory": 1048576})");
  options.input_dir = options.output_dir = folder.path();
  Engine engine(options);
  Gate gate;
  control->call_at_launch(1, 4, &Gate::hold, &gate);
  engine::ServiceOptions service_options;
  service_options.queue_file = folder / "queue.db";
  {
    engine::Service service(engine, service_options);
    engine::JobQueue& queue = service.queue();
    queue.pause_all(true);  // all at once, so that both devices get some
    for (int i = 0; i < kJobs; ++i) {
      const std::string prompt = cat(
          R"({"load": {"class_type": "test.load", "inputs": {"path": ")",
          (folder / "a.safetensors").string(),
          R"("}}, "loop": {"class_type": "test.planned_loop", "inputs": {"model": ["load", 0],)",
          R"("width": )", kWidth, R"(, "steps": 4, "start": )", i,
          R"(}}, "keep": {"class_type": "test.keep", "inputs": {"value": ["loop", 0]}}})");
      const test::Reply reply =
          test::ask(service.port(), "POST", "/v1/jobs", cat("{\"workflow\": ", prompt, "}"));
      BOOST_TEST_REQUIRE(reply.status == 201, reply.body);
    }
    queue.pause_all(false);
    BOOST_TEST_REQUIRE(test::comes_about([&] { return gate.is_reached.load(); }),
                       "no job comes to the second device");
    control->kill(1);
    gate.is_open = true;
    for (std::int64_t ended = 1; ended <= kJobs; ++ended)
      BOOST_TEST_REQUIRE(test::comes_about([&] { return queue.counts().ended >= ended; }),
                         "after a minute, job " << ended << " to end has not ended");
    for (const engine::Job& job : queue.search({.limit = kJobs})) {
      BOOST_TEST((job.state == engine::JobState::done), job.status);
    }
    const std::vector<DeviceInfo> devices = engine.devices();
    BOOST_TEST(devices.at(1).failures > 0u);
    BOOST_TEST(!devices.at(1).last_failure.empty());
    BOOST_TEST(devices.at(0).failures == 0u);
    const std::string ready = test::ask(service.port(), "GET", "/v1/health/ready").body;
    BOOST_TEST(ready.find("ready") != std::string::npos, ready);
  }
  control->revive(1);
  engine::set_log_sink({});
}

BOOST_AUTO_TEST_SUITE_END()
