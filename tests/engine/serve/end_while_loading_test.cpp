// The end of a server while a device loads a model: what is not there yet is not loaded any more.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "engine/base/log.h"
#include "engine/serve/service.h"
#include "heddle/models.hpp"
#include "tests/engine/serve/http_client.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;

namespace {

constexpr int kWide = 8, kLayers = 500;

// A model that takes 20 s to load: it would be there if the end waited for it.
struct SlowLoad {
  std::atomic<bool> has_begun = false;
  test::FakeControl control;
  test::TemporaryFolder folder;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<engine::Service> service;

  SlowLoad() {
    engine::set_log_sink([](engine::Level, std::string_view) {});
    folder.write("a.safetensors", test::LayersFile{"a", kWide, kLayers}.bytes());
    EngineOptions options = test::fake_engine_options({"fake:0"});
    options.input_dir = options.output_dir = folder.path();
    engine = std::make_unique<Engine>(options);
    engine::ServiceOptions service_options;
    service_options.queue_file = folder / "queue.db";
    service = std::make_unique<engine::Service>(*engine, service_options);
    control->call_at_weights(
        0, 3,
        [](void* self) {
          static_cast<SlowLoad*>(self)->has_begun = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(40));
        },
        this);
  }
  ~SlowLoad() {
    service.reset();
    engine.reset();
    engine::set_log_sink({});
  }
  std::string loader() const {
    return cat(R"({"class_type": "test.load", "inputs": {"path": ")",
               (folder / "a.safetensors").string(), R"("}})");
  }
  // Then the model is not there whole.
  void end() {
    BOOST_TEST_REQUIRE(test::comes_about([&] { return has_begun.load(); }));
    service.reset();
    BOOST_TEST(control->weights(0) >= 3u);
    BOOST_TEST(control->weights(0) < std::uint64_t(kLayers));
    control->call_at_weights(0, 0, nullptr, nullptr);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(end_while_loading)

BOOST_FIXTURE_TEST_CASE(a_model_that_was_asked_for_ahead, SlowLoad) {
  const std::string body =
      cat(R"({"device": "fake:0", "pin": true, "workflow": {"1": )", loader(),
          R"(, "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}})");
  test::Reply reply;
  std::string fault;
  std::jthread asks([&, port = service->port()] {
    try {
      reply = test::ask(port, "POST", "/v1/models/load", body);
    } catch (const std::exception& error) {
      fault = error.what();
    }
  });
  end();
  asks.join();
  BOOST_TEST(fault == "");
  BOOST_TEST((reply.status == 0 || reply.status >= 400), reply.body);  // 0: it was cut off
  for (const ResidentModel& each : Models(*engine).resident()) BOOST_TEST(!each.is_pinned);
}

BOOST_FIXTURE_TEST_CASE(a_model_of_a_job, SlowLoad) {
  const std::string prompt =
      cat("{\"load\": ", loader(),
          R"(, "loop": {"class_type": "test.planned_loop", "inputs": {"model": ["load", 0],)",
          R"("width": )", kWide, R"(, "steps": 4, "start": 1}},)",
          R"("keep": {"class_type": "test.keep", "inputs": {"value": ["loop", 0]}}})");
  const test::Reply reply =
      test::ask(service->port(), "POST", "/v1/jobs", cat("{\"workflow\": ", prompt, "}"));
  BOOST_TEST_REQUIRE(reply.status == 201, reply.body);
  end();
  // It waits for the next server.
  engine::ServiceOptions options;
  options.queue_file = folder / "queue.db";
  service = std::make_unique<engine::Service>(*engine, options);
  engine::JobQueue& queue = service->queue();
  BOOST_TEST_REQUIRE(test::comes_about([&] { return queue.counts().ended >= 1; }));
  for (const engine::Job& job : queue.search({.limit = 1}))
    BOOST_TEST((job.state == engine::JobState::done), job.status);
  BOOST_TEST(control->weights(0) >= std::uint64_t(kLayers));
}

BOOST_AUTO_TEST_SUITE_END()
