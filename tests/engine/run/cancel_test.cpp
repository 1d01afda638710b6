// A session that is cancelled at every point where it asks: work that it leaves enqueued touches
// nothing that whoever comes next owns.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::CallPlacement;
using engine::Model;
using engine::ParallelMode;

BOOST_AUTO_TEST_SUITE(cancel)

namespace {

constexpr std::uint32_t kSteps = 2;

struct Asked {
  int count = 0;
  int limit = 1 << 20;  // from the question of this number on the answer is yes
};

using Parallelize = std::function<CallPlacement(const Model&)>;

CallPlacement back_and_forth(const Model& model) {
  CallPlacement placement{ParallelMode::layers, {0, 1, 2}, {}, {}, {}};
  for (std::uint32_t n = 0; n < model.graph->nodes.size(); ++n) placement.of_block.push_back(n % 3);
  return placement;
}
CallPlacement two_sets(const Model&) { return {ParallelMode::cfg, {1, 2}, {}, {0, 1}, {}}; }
CallPlacement batch(const Model&) { return {ParallelMode::data, {1, 0, 2}, {}, {}, {2, 1, 1}}; }

// The bytes of the sets' x after all steps; nothing of a session that was cancelled.
std::vector<std::byte> step_through(test::LayersModel& layers, const Parallelize& parallelize,
                                    Asked& asked) {
  auto opened =
      layers.open(kSteps, 2, parallelize, [&asked] { return ++asked.count >= asked.limit; });
  try {
    for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
  } catch (const engine::Error& error) {
    BOOST_TEST((error.code() == engine::Code::cancelled), error.full());
    return {};
  }
  std::vector<std::byte> bytes;
  for (const engine::Value& set : opened.x) {
    const engine::Tensor& x =
        engine::get_tensor(**std::get<engine::Record>(set->content).find("x"));
    std::vector<std::byte> of_set(engine::dense_bytes(x->info));
    layers.state(0).read(x, of_set.data(), of_set.size());
    bytes.insert(bytes.end(), of_set.begin(), of_set.end());
  }
  return bytes;
}

}  // namespace

// The devices do their work as late as they may: what a cancelled session has enqueued and nobody
// has waited for runs while the next one is at work.
BOOST_AUTO_TEST_CASE(sessions_cancelled_anywhere_leave_the_next_one_its_bytes) {
  const test::FakeControl control;
  for (const Parallelize& parallelize :
       {Parallelize(back_and_forth), Parallelize(two_sets), Parallelize(batch)})
    for (int seed = 0; seed < 8; ++seed) {
      const char* peer = seed % 2 == 0 ? "false" : "true";
      test::LayersModel layers({"fake:0", "fake:1", "fake:2"},
                               engine::cat(R"({"shuffle": )", seed, R"(, "peer": )", peer, "}"));
      Asked all;
      const std::vector<std::byte> good = step_through(layers, parallelize, all);
      BOOST_TEST_REQUIRE(!good.empty());
      BOOST_TEST_REQUIRE(all.count > int(kSteps) * test::LayersModel::kLayers);
      const auto before = layers.used();
      for (int nth = test::first_of_stride(seed); nth <= all.count; nth += test::kStride) {
        BOOST_TEST_INFO("seed " << seed << ", cancelled at question " << nth);
        Asked until{0, nth};
        BOOST_TEST(step_through(layers, parallelize, until).empty());
        // The device of the caller may free what it keeps before the others have begun.
        for (std::uint32_t d = 0; d < 3; ++d) layers.state(d).settle();
        Asked none;
        if (nth % 8 == 0) BOOST_TEST((step_through(layers, parallelize, none) == good));
      }
      BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
      for (std::uint32_t d = 0; d < 3; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
    }
}

BOOST_AUTO_TEST_SUITE_END()
