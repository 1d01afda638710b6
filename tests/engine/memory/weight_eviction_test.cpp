// Which weights go when room is wanted.
#include <boost/test/unit_test.hpp>
#include <future>
#include <thread>

#include "engine/base/text.h"
#include "engine/memory/weights.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using Pinned = std::shared_ptr<const engine::DeviceWeight>;

namespace {

constexpr int kLarge = 80;  // rows and columns: 25,600 bytes
constexpr std::uint64_t kLargeBytes = std::uint64_t{kLarge} * kLarge * sizeof(float);
constexpr std::uint64_t kSmallBytes = 64 * sizeof(float);

// Models of `large` matrices, of which each has a small vector behind it.
struct SizedModel {
  SizedModel(const std::filesystem::path& path, std::uint64_t id)
      : checkpoint(engine::open_checkpoint(path)), identity(engine::Hasher().add(id).finish()) {}
  engine::WeightSource source(const std::string& name) const {
    const engine::TensorView& tensor = checkpoint.at(name);
    return {.parts = {{&tensor, 0, tensor.shape[0]}}, .use = HEDDLE_USE_VECTOR};
  }
  engine::Checkpoint checkpoint;
  engine::Hash128 identity;
};

struct WeightEvictionFixture {
  test::Fakes fakes;
  test::TemporaryFolder folder;
  engine::WeightStore store{fakes.state()};

  SizedModel model(std::uint64_t id, int large) {
    std::vector<test::FileTensor> tensors;
    for (int i = 0; i < large; ++i) {
      const std::vector<float> matrix(kLarge * kLarge, float(i)), vector(64, float(i));
      tensors.push_back(
          {engine::cat("m", i), "F32", {kLarge, kLarge}, test::bytes_of_floats(matrix)});
      tensors.push_back({engine::cat("v", i), "F32", {64}, test::bytes_of_floats(vector)});
    }
    return SizedModel(
        folder.write(engine::cat(id, ".safetensors"), test::safetensors_bytes(tensors)), id);
  }
  std::map<engine::Hash128, std::uint64_t> all_of(const SizedModel& model, int large) {
    std::map<engine::Hash128, std::uint64_t> weights;
    for (int i = 0; i < large; ++i)
      for (const char* kind : {"m", "v"})
        weights[model.source(engine::cat(kind, i)).key(model.checkpoint.identity())] = 1;
    return weights;
  }
  // Loads all of it and releases it.
  void use(const SizedModel& model, int large, const std::string& name) {
    std::vector<Pinned> held;
    for (int i = 0; i < large; ++i)
      for (const char* kind : {"m", "v"}) {
        const engine::WeightUser user{model.identity, name, std::uint32_t(2 * i + (*kind == 'v'))};
        held.push_back(
            store.get(model.source(engine::cat(kind, i)), model.checkpoint.identity(), {}, user));
      }
    store.finish(held);
  }
  // Those that are made anew when all are wanted: they are not here.
  std::vector<std::string> missing(const SizedModel& model, int large, const std::string& name) {
    std::vector<std::string> names;
    for (int i = 0; i < large; ++i)
      for (const char* kind : {"m", "v"}) {
        const std::uint64_t made = fakes.control()->weights(0);
        const engine::WeightUser user{model.identity, name, std::uint32_t(2 * i + (*kind == 'v'))};
        const Pinned weight =
            store.get(model.source(engine::cat(kind, i)), model.checkpoint.identity(), {}, user);
        if (fakes.control()->weights(0) != made) names.push_back(engine::cat(name, ".", kind, i));
      }
    store.finish();
    return names;
  }
  using Names = std::vector<std::string>;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(weight_eviction, WeightEvictionFixture)

BOOST_AUTO_TEST_CASE(of_a_model_the_end_of_its_blocks_goes_and_no_more_than_is_needed) {
  const SizedModel one = model(1, 5);
  use(one, 5, "one");
  BOOST_TEST(store.evict(kLargeBytes + 1) == 2 * kLargeBytes);
  BOOST_TEST(missing(one, 5, "one") == (Names{"one.m3", "one.m4"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_a_next_use_the_model_used_longest_ago_goes_first) {
  const SizedModel one = model(1, 2), two = model(2, 2), three = model(3, 2);
  use(one, 2, "one");
  use(two, 2, "two");
  use(three, 2, "three");
  use(one, 2, "one");
  store.evict(3 * kLargeBytes);
  BOOST_TEST(missing(one, 2, "one").empty());
  BOOST_TEST(missing(two, 2, "two") == (Names{"two.m0", "two.m1"}),
             boost::test_tools::per_element());
  BOOST_TEST(missing(three, 2, "three") == (Names{"three.m1"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(
    the_model_whose_next_use_is_farthest_goes_before_nearer_ones_and_after_those_without) {
  const SizedModel near = model(1, 2), far = model(2, 2), never = model(3, 2);
  const engine::NextUses next{{near.identity, 1}, {far.identity, 7}};
  use(near, 2, "near");
  use(far, 2, "far");
  use(never, 2, "never");
  store.evict(3 * kLargeBytes, next);
  BOOST_TEST(missing(near, 2, "near").empty());
  BOOST_TEST(missing(far, 2, "far") == (Names{"far.m1"}), boost::test_tools::per_element());
  BOOST_TEST(missing(never, 2, "never") == (Names{"never.m0", "never.m1"}),
             boost::test_tools::per_element());
  // Nothing that is used again goes when only the others are asked for.
  BOOST_TEST(store.evict(~std::uint64_t{0}, next, engine::WeightStore::Reach::without_use) ==
             2 * (kLargeBytes + kSmallBytes));
  BOOST_TEST(missing(near, 2, "near").empty());
  BOOST_TEST(missing(far, 2, "far").empty());
}

BOOST_AUTO_TEST_CASE(small_weights_go_when_nothing_large_is_left) {
  const SizedModel one = model(1, 3), two = model(2, 1);
  use(one, 3, "one");
  use(two, 1, "two");
  BOOST_TEST(store.evict(4 * kLargeBytes) == 4 * kLargeBytes);
  BOOST_TEST(store.bytes() == 4 * kSmallBytes);
  BOOST_TEST(store.evict(1) == kSmallBytes);
  BOOST_TEST(missing(one, 3, "one") == (Names{"one.m0", "one.m1", "one.m2", "one.v2"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_kept_model_stays_also_what_comes_later_until_it_is_released) {
  const SizedModel one = model(1, 2), two = model(2, 2);
  const auto told = [&](const SizedModel& model) {
    const auto models = store.models();
    return *std::ranges::find(models, model.identity, &engine::ModelWeights::model);
  };
  store.keep(one.identity, all_of(one, 2));  // before anything of it is there
  use(one, 2, "one");
  use(two, 2, "two");
  BOOST_TEST(told(one).is_kept());
  BOOST_TEST(told(one).pinned == told(one).bytes);
  BOOST_TEST(told(one).used == 0u);
  BOOST_TEST(!told(two).is_kept());
  {
    const Pinned used =
        store.get(one.source("m0"), one.checkpoint.identity(), {}, {one.identity, "one", 0});
    BOOST_TEST(told(one).used == kLargeBytes);
  }
  for (int i = 0; i < 2; ++i) {
    store.evict(~std::uint64_t{0});
    store.unload();
    store.expire(1e9 * (i + 1), 1);
  }
  BOOST_TEST(missing(one, 2, "one").empty());
  BOOST_TEST(store.release_kept() == std::vector{one.identity});
  BOOST_TEST(!told(one).is_kept());
  BOOST_TEST(told(one).pinned == 0u);
  store.unload("one");
  BOOST_TEST(missing(one, 2, "one").size() == 4u);
  // Nothing is left pinned of what goes with its device.
  store.keep(one.identity, store.weights_of(one.identity));
  store.drop_all();
  for (const auto& line : fakes.state().ledger().report().held)
    BOOST_TEST(line.pinned == 0u, line.owner);
}

// The model that keeps a weight is not the one that used it last.
BOOST_AUTO_TEST_CASE(what_two_kept_models_share_stays_for_both) {
  const SizedModel one = model(1, 1);
  const engine::Hash128 other = engine::Hasher().add(2).finish();
  const auto use_as = [&](const engine::Hash128& as, const char* name) {
    store.finish(std::vector{store.get(one.source("m0"), one.checkpoint.identity(), {},
                                       engine::WeightUser{as, name, 0})});
  };
  for (const engine::Hash128& each : {one.identity, other}) store.keep(each, all_of(one, 1));
  use_as(one.identity, "one");
  use_as(other, "other");
  use_as(one.identity, "one");
  store.release(one.identity);
  BOOST_TEST(store.evict(~std::uint64_t{0}) == 0u);
  store.release(other);
  store.release(other);
  BOOST_TEST(store.evict(~std::uint64_t{0}) == kLargeBytes);
}

BOOST_AUTO_TEST_CASE(what_comes_behind_a_pin_of_a_part_may_go) {
  const SizedModel one = model(1, 3);
  use(one, 2, "one");
  const auto there = store.weights_of(one.identity);
  BOOST_TEST(there.size() == 4u);
  store.keep(one.identity, there);
  use(one, 3, "one");
  store.unload();
  BOOST_TEST(missing(one, 3, "one") == (Names{"one.m2", "one.v2"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_lies_there_is_told_while_a_device_works) {
  const SizedModel one = model(1, 1), two = model(2, 1);
  use(one, 1, "one");
  std::promise<void> goes_on;
  const auto hold = [](void* until) {
    static_cast<std::promise<void>*>(until)->get_future().wait();
  };
  fakes.control()->call_at_launch(0, 1, hold, &goes_on);
  const std::vector<std::int64_t> shape{1};
  const engine::Tensor tensor = fakes.state().make(engine::make_info(HEDDLE_F32, shape));
  heddle_tensor* const out[] = {tensor.get()};
  const heddle_fill_attrs attrs{1};
  fakes.state().op(engine::op_id(HEDDLE_OP_FILL), {}, out, std::as_bytes(std::span(&attrs, 1)));
  const Pinned made =
      store.get(two.source("m0"), two.checkpoint.identity(), {}, {two.identity, "two", 0});
  std::promise<void> begins;
  auto proven = std::async(std::launch::async, [&] {
    begins.set_value();
    store.finish(std::vector{made});
  });
  begins.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // into the device's work
  auto told = std::async(std::launch::async, [&] { return store.models().size(); });
  const bool is_told = told.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  goes_on.set_value();
  BOOST_TEST(is_told);
  BOOST_TEST(told.get() == 2u);
  proven.get();
}

BOOST_AUTO_TEST_CASE(what_is_pinned_stays_and_pins_are_counted) {
  const SizedModel one = model(1, 2);
  Pinned first = store.get(one.source("m0"), one.checkpoint.identity());
  Pinned second = store.get(one.source("m0"), one.checkpoint.identity());
  use(one, 2, "one");
  BOOST_TEST(store.evict(~std::uint64_t{0}) == kLargeBytes + 2 * kSmallBytes);
  first.reset();
  BOOST_TEST(store.evict(~std::uint64_t{0}) == 0u);
  BOOST_TEST(store.models().at(0).pinned == kLargeBytes);
  second->pin();
  second->unpin();
  BOOST_TEST(second->is_pinned());
  const engine::DeviceWeight loose;
  BOOST_TEST((test::refusal_of([&] { loose.unpin(); }).code() == engine::Code::internal));
  second.reset();
  BOOST_TEST(store.evict(~std::uint64_t{0}) == kLargeBytes);
  BOOST_TEST(store.bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(models_are_unloaded_by_name_and_told_with_their_bytes) {
  const SizedModel one = model(1, 2), two = model(2, 1);
  use(one, 2, "one");
  use(two, 1, "two");
  const std::vector<engine::ModelWeights> models = store.models();
  BOOST_TEST_REQUIRE(models.size() == 2u);
  BOOST_TEST(models[0].name == "one");
  BOOST_TEST(models[0].bytes == 2 * (kLargeBytes + kSmallBytes));
  BOOST_TEST(models[0].pinned == 0u);
  BOOST_TEST(store.unload("one") == models[0].bytes);
  BOOST_TEST(store.bytes() == models[1].bytes);
  BOOST_TEST(store.unload("one") == 0u);
  BOOST_TEST(store.unload() == models[1].bytes);
}

BOOST_AUTO_TEST_CASE(what_was_not_used_for_a_while_expires) {
  const SizedModel one = model(1, 1), two = model(2, 1);
  use(one, 1, "one");
  use(two, 1, "two");
  BOOST_TEST(store.expire(100, 60) == 0u);
  use(two, 1, "two");
  BOOST_TEST(store.expire(130, 60) == 0u);
  Pinned held =
      store.get(one.source("m0"), one.checkpoint.identity(), {}, {one.identity, "one", 0});
  BOOST_TEST(store.expire(159, 60) == 0u);
  BOOST_TEST(store.expire(190, 60) == kLargeBytes + kSmallBytes);  // of two
  BOOST_TEST(store.models().at(0).name == "one");
  held.reset();
  BOOST_TEST(store.expire(249, 60) == 0u);  // in use when it was looked at last
  BOOST_TEST(store.expire(250, 60) == kLargeBytes + kSmallBytes);
}

BOOST_AUTO_TEST_CASE(two_threads_that_want_the_same_weight_take_memory_for_it_once) {
  const SizedModel one = model(1, 4);
  for (int round = 0; round < 20; ++round) {
    store.drop_unused();
    const std::uint64_t made = fakes.control()->weights(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { use(one, 4, "one"); });
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(fakes.control()->weights(0) - made == 8u);
  }
  BOOST_TEST(store.bytes() == 4 * (kLargeBytes + kSmallBytes));
}

BOOST_AUTO_TEST_CASE(weights_are_evicted_pinned_and_made_by_several_threads_at_once) {
  const SizedModel one = model(1, 4), two = model(2, 4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) use(t == 0 ? one : two, 4, t == 0 ? "one" : "two");
    });
  for (int i = 0; i < 200; ++i) store.evict(2 * kLargeBytes);
  for (std::thread& thread : threads) thread.join();
  fakes.state().settle();
  store.drop_unused();
  BOOST_TEST(store.bytes() == 0u);
  BOOST_TEST(fakes.state().pool().use().used == 0u);
  BOOST_TEST(fakes.control()->freed_in_use(0) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
