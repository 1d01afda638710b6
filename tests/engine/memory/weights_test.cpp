// Loading weights: who waits for whom.
#include "engine/memory/weights.h"

#include <boost/test/unit_test.hpp>
#include <future>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// A file of one matrix, and what fills a slot with it.
struct File {
  explicit File(const std::filesystem::path& path)
      : checkpoint(core::open_checkpoint(path)), tensor(checkpoint.tensors()[0]) {}
  core::WeightSource source() const {
    return {.parts = {{&tensor, 0, tensor.shape[0]}}, .use = HEDDLE_USE_LINEAR};
  }
  core::Checkpoint checkpoint;
  const core::TensorView& tensor;
};

struct WeightsFixture {
  test::Fakes fakes{"{}", 2};
  test::TemporaryFolder folder;

  File file(const std::string& name) {
    return File(folder.write(
        name,
        test::safetensors_bytes(
            {{"weight", "F32", {16, 16}, test::bytes_of_floats(std::vector<float>(256, 1))}})));
  }
};

constexpr std::uint64_t kRoom = 1 << 20;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(weights, WeightsFixture)

BOOST_AUTO_TEST_CASE(one_device_loads_a_model_while_another_is_in_the_middle_of_it) {
  core::WeightStore first(fakes.state(0), kRoom), second(fakes.state(1), kRoom);
  const File one = file("one.safetensors"), two = file("two.safetensors");
  std::promise<void> is_loading, may_go_on;
  std::future<void> begun = is_loading.get_future();
  // The first stands still while it makes a weight: with whatever locks that takes.
  const core::WorkWatch hold = [&](core::DeviceState&, core::StreamRow, core::Event, core::Event,
                                   std::uint64_t) {
    is_loading.set_value();
    may_go_on.get_future().wait();
  };
  std::future<void> slow = std::async(std::launch::async, [&] {
    first.get(one.source(), one.checkpoint.identity(), hold);
    first.finish();
  });
  begun.wait();
  std::future<void> fast = std::async(std::launch::async, [&] {
    for (const File* f : {&one, &two}) second.get(f->source(), f->checkpoint.identity());
    second.finish();
  });
  BOOST_TEST((fast.wait_for(std::chrono::seconds(60)) == std::future_status::ready));
  may_go_on.set_value();
  slow.get();
  BOOST_TEST(first.bytes() > 0u);
  BOOST_TEST(second.bytes() == 2 * first.bytes());
}

BOOST_AUTO_TEST_SUITE_END()
