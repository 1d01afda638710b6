// Runs at the same time that share their prompts: each prompt is encoded once.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int kRuns = 4;

// Counts nodes by class over all runs. Nothing is encoded before all of them have the model: so all
// of them have begun, and found nothing in the cache.
class Counts {
 public:
  Observer observer() {
    return [this, has_model = false](const Event& event) mutable {
      std::unique_lock lock(mutex_);
      if (event.kind == Event::Kind::node_started) ++started[std::string(event.class_type)];
      if (event.class_type == "DiffusersLoader" && !has_model) {
        has_model = true;
        ++models_;
        all_.notify_all();
      }
      if (event.kind == Event::Kind::node_started && event.class_type == "CLIPTextEncode")
        all_.wait_for(lock, std::chrono::seconds(60), [this] { return models_ == kRuns; });
    };
  }
  std::map<std::string, int> started;

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int models_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_prompts)

BOOST_AUTO_TEST_CASE(four_runs_of_two_prompts_encode_twice) {
  EngineOptions options = engine_options();
  const TemporaryFolder output;
  options.output_dir = output.path();
  Engine engine(options);
  Counts counts;
  std::vector<Run> runs;
  for (int seed = 1; seed <= kRuns; ++seed) {
    Workflow flow = engine.load(std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs/scene.json");
    flow.set("sampler.seed", std::to_string(seed));
    flow.set("sampler.steps", "1");
    flow.set("size.width", "128");
    flow.set("size.height", "128");
    StartOptions start;
    start.observer = counts.observer();
    start.fetch = {"sampler.LATENT"};
    runs.push_back(engine.start(flow, std::move(start)));
  }
  std::vector<std::vector<float>> latents;
  for (Run& run : runs) latents.push_back(run.wait().floats("sampler.LATENT", "samples"));
  BOOST_TEST(counts.started["CLIPTextEncode"] == 2);
  BOOST_TEST(counts.started["KSampler"] == kRuns);
  for (std::size_t i = 1; i < latents.size(); ++i) BOOST_TEST((latents[i] != latents[0]));
}

BOOST_AUTO_TEST_SUITE_END()
