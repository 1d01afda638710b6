// Loading weights: who waits for whom.
#include "engine/memory/weights.h"

#include <boost/test/unit_test.hpp>
#include <future>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// A file of one matrix, and what fills a slot with it.
struct File {
  explicit File(const std::filesystem::path& path)
      : checkpoint(engine::open_checkpoint(path)), tensor(checkpoint.tensors()[0]) {}
  engine::WeightSource source() const {
    return {.parts = {{&tensor, 0, tensor.shape[0]}}, .use = HEDDLE_USE_LINEAR};
  }
  engine::Checkpoint checkpoint;
  const engine::TensorView& tensor;
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
  engine::WeightStore first(fakes.state(0), kRoom), second(fakes.state(1), kRoom);
  const File one = file("one.safetensors"), two = file("two.safetensors");
  std::promise<void> is_loading, may_go_on;
  std::future<void> begun = is_loading.get_future();
  // The first stands still while it makes a weight: with whatever locks that takes.
  const engine::WorkWatch hold = [&](engine::DeviceState&, engine::StreamRow, engine::Event,
                                     engine::Event, std::uint64_t) {
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

namespace {

bool says_gone(const engine::Error& error, const std::filesystem::path& file) {
  const std::string text = error.what();
  return error.code() == engine::Code::io &&
         text.find(file.string() + ": the bytes ") != std::string::npos &&
         text.find("are gone: the file has") != std::string::npos;
}

}  // namespace

// The device's own thread reads the pages, and nobody has looked at the file before.
BOOST_AUTO_TEST_CASE(a_file_that_is_cut_short_while_a_device_reads_it_is_an_error_that_names_it) {
  engine::WeightStore store(fakes.state(0), kRoom);
  const std::vector<float> numbers(4096, 1);
  const auto write = [&](const std::string& name) {
    return folder.write(name, test::safetensors_bytes(
                                  {{"weight", "F32", {64, 64}, test::bytes_of_floats(numbers)}}));
  };
  const std::filesystem::path path = write("cut.safetensors");
  {
    const File cut(path);
    std::filesystem::resize_file(path, 4096);
    const auto weight = store.get(cut.source(), cut.checkpoint.identity());
    const engine::Error error = test::refusal_of([&] { store.finish({&weight, 1}); });
    BOOST_TEST(says_gone(error, path), error.what());
    BOOST_TEST(!store.has(cut.source(), cut.checkpoint.identity()));
    BOOST_TEST(store.bytes() == 0u);
  }
  const File whole(write("cut.safetensors"));
  const auto weight = store.get(whole.source(), whole.checkpoint.identity());
  store.finish({&weight, 1});
  BOOST_TEST(store.has(whole.source(), whole.checkpoint.identity()));
}

BOOST_AUTO_TEST_CASE(columns_and_gguf_of_a_file_that_is_cut_short_are_errors_too) {
  const std::vector<float> numbers(4096, 1);
  const std::filesystem::path path = folder.write(
      "columns.safetensors",
      test::safetensors_bytes({{"weight", "F32", {64, 64}, test::bytes_of_floats(numbers)}}));
  const File file(path);
  engine::WeightSource columns = file.source();
  columns.columns = {{0, 32}};
  std::filesystem::resize_file(path, 4096);
  const engine::Error error = test::refusal_of([&] { engine::host_weight(columns); });
  BOOST_TEST(says_gone(error, path), error.what());
  const std::filesystem::path other = folder.write(
      "columns.gguf",
      test::gguf_bytes(
          {.tensors = {{"weight", test::kGgmlF32, {64, 64}, test::bytes_of_floats(numbers)}}}));
  const File second(other);
  columns = second.source();
  columns.columns = {{0, 32}};
  std::filesystem::resize_file(other, 100);
  const engine::Error again = test::refusal_of([&] { engine::host_weight(columns); });
  BOOST_TEST(says_gone(again, other), again.what());
}

BOOST_AUTO_TEST_SUITE_END()
