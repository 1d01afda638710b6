// Weights of one file on several devices: one mapping in host memory, and no loading that waits for
// another.
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::TemporaryFolder;

BOOST_AUTO_TEST_SUITE(shared_weights)

namespace {

constexpr int kWidth = 24, kLayers = 3;
constexpr std::uint64_t kWeightBytes = std::uint64_t{kLayers} * kWidth * kWidth * sizeof(float);
const std::vector<std::string> kDevices{"fake:0", "fake:1", "cpu:0", "cpu:1"};

std::string write_model(const TemporaryFolder& folder, const std::string& name) {
  return folder.write(name, test::LayersFile{name, kWidth, kLayers}.bytes()).string();
}

// An input that no node declares tells the flows of two devices apart: each is to be computed.
std::string flow(const std::string& model, const std::string& device) {
  const std::string on = R"(, "device": ")" + device + "\"}";
  return test::workflow(
      {{"load", (R"({"class_type": "test.load", "inputs": {"path": ")" + model + R"("}})").c_str()},
       {"x",
        (R"({"class_type": "test.ramp", "inputs": {"count": 24, "of": ")" + device + "\"}" + on)
            .c_str()},
       {"loop",
        (R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0]})" + on)
            .c_str()},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
}

// Mappings of the file in this process.
int mappings(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with(file) ? 1 : 0;
  return count;
}

// Everybody who arrives waits until all have.
class Meeting {
 public:
  explicit Meeting(int all) : all_(all) {}
  void arrive() {
    std::unique_lock lock(mutex_);
    ++here_;
    changed_.notify_all();
    // Long enough for any machine: who does not come makes the test fail, not hang.
    is_missed_ =
        !changed_.wait_for(lock, std::chrono::seconds(60), [&] { return here_ >= all_; }) ||
        is_missed_;
  }
  bool is_missed() {
    const std::lock_guard lock(mutex_);
    return is_missed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int all_;
  int here_ = 0;
  bool is_missed_ = false;
};

}  // namespace

BOOST_AUTO_TEST_CASE(four_devices_that_compute_with_a_model_at_once_share_one_mapping_of_its_file) {
  const test::FakeControl control;
  const TemporaryFolder folder;
  const std::string model = write_model(folder, "model.safetensors");
  Engine engine(test::fake_engine_options(kDevices));
  // All have loaded their weights when all are done with their first step.
  Meeting loaded(int(kDevices.size()));
  std::atomic<int> most{0};
  std::vector<Run> runs;
  for (const std::string& device : kDevices)
    runs.push_back(engine.start(engine.parse(flow(model, device)),
                                {.observer =
                                     [&](const Event& e) {
                                       if (e.kind != Event::Kind::node_progress || e.fraction > 0.6)
                                         return;
                                       loaded.arrive();
                                       most = std::max(most.load(), mappings(model));
                                     },
                                 .fetch = {"keep.out"}}));
  std::vector<std::vector<float>> results;
  for (Run& run : runs) results.push_back(run.wait().floats("keep.out"));
  BOOST_TEST(!loaded.is_missed());
  BOOST_TEST(most == 1);
  for (const auto& result : results) BOOST_TEST((result == results[0]));
  // Each fake made every weight once, from the mapping.
  for (std::uint32_t d = 0; d < 2; ++d) BOOST_TEST(control->weights(d) == std::uint64_t{kLayers});
}

BOOST_AUTO_TEST_CASE(another_run_on_the_device_takes_the_weights_that_are_there) {
  const test::FakeControl control;
  const TemporaryFolder folder;
  const std::string model = write_model(folder, "model.safetensors");
  Engine engine(test::fake_engine_options({"fake:0", "fake:1"}));
  for (int run = 0; run < 2; ++run) {
    engine.start(engine.parse(flow(model, "fake:0")), {.inputs = {{"x.start", double(run)}}})
        .wait();
    BOOST_TEST(control->weights(0) == std::uint64_t{kLayers});
    BOOST_TEST(control->bytes_copied(HEDDLE_FAKE_HOST, 0) >= kWeightBytes);
  }
  BOOST_TEST(control->weights(1) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
