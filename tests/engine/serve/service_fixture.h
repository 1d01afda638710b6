// A whole service in the process: an engine with the nodes of the execution suite, a queue in a
// folder of its own, a port of loopback.
#pragma once

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "engine/base/text.h"
#include "engine/serve/service.h"
#include "tests/engine/serve/http_client.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

inline EngineOptions serving_options(const std::filesystem::path& folder) {
  EngineOptions options = engine_options();
  options.plugin_dirs.push_back(HEDDLE_SAMPLE_PLUGINS_DIR "/execution");
  for (const char* name : {"input", "output", "models"})
    std::filesystem::create_directories(folder / name);
  options.input_dir = folder / "input";
  options.output_dir = folder / "output";
  options.model_dirs = {folder / "models"};
  return options;
}

struct Serving {
  TemporaryFolder folder;
  Engine engine{serving_options(folder.path())};
  engine::ServiceOptions options;
  std::unique_ptr<engine::Service> service;

  explicit Serving(const std::function<void(engine::ServiceOptions&)>& change = {}) {
    options.queue_file = folder / "queue.db";
    if (change) change(options);
    start();
  }
  void start() { service = std::make_unique<engine::Service>(engine, options); }

  std::uint16_t port() const { return service->port(); }
  Reply get(const std::string& target) const { return ask(port(), "GET", target); }
  Reply post(const std::string& target, const std::string& body) const {
    return ask(port(), "POST", target, body);
  }
  // The id of a prompt that was taken; `more`: members beside it, each with a comma in front.
  std::string submit(const std::string& prompt, const std::string& more = "") const {
    const Reply reply = post("/prompt", "{\"prompt\": " + prompt + more + "}");
    BOOST_TEST_REQUIRE(reply.status == 200, reply.body);
    return reply.json().at("prompt_id").as_string();
  }
  // Its entry in the history, as soon as it is there.
  engine::Json ended(const std::string& id) const {
    for (int tries = 0; tries < 6000; ++tries) {
      const engine::Json history = get("/history/" + id).json();
      if (const engine::Json* entry = history.find(id)) return *entry;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    BOOST_TEST_REQUIRE(false, id << " does not end");
    return {};
  }
  template <class F>
  void wait_until(F is_so) const {
    for (int tries = 0; tries < 6000; ++tries) {
      if (is_so()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    BOOST_TEST_REQUIRE(false, "it does not come about");
  }
  std::size_t running() const { return get("/queue").json().at("queue_running").size(); }
  std::size_t pending() const { return get("/queue").json().at("queue_pending").size(); }
};

// Shows a number, 2 after 1.
inline std::string showing(int number) {
  return "{\"1\": {\"class_type\": \"t.Number\", \"inputs\": {\"value\": " +
         std::to_string(number) +
         "}}, \"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}}";
}

// The same, as soon as `count` such prompts run; `number` makes it a prompt of its own.
inline std::string meeting(int number, int count) {
  return "{\"1\": {\"class_type\": \"t.Meet\", \"inputs\": {\"value\": " + std::to_string(number) +
         ", \"count\": " + std::to_string(count) +
         "}}, \"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}}";
}

inline std::string failing(const std::string& why) {
  return "{\"1\": {\"class_type\": \"t.Meet\", \"inputs\": {\"value\": 3, \"fails\": \"" + why +
         "\"}}, \"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}}";
}

}  // namespace heddle::test
