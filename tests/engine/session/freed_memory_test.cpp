// When a session that streams is set up anew because memory has come free: by itself, and in runs
// beside a program that takes and frees memory.
#include "engine/session/freed_memory.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::FreedMemory;

namespace {

constexpr int kModelWidth = 96, kLayers = 12, kSteps = 12;
constexpr std::uint64_t kWeight = std::uint64_t{kModelWidth} * kModelWidth * sizeof(float);
constexpr std::uint64_t kMemory = 1 << 20;
constexpr std::uint64_t kForeign = kMemory - kLayers * kWeight / 2;

struct FreedMemoryFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;
  const test::LayersFile model{"model", kModelWidth, kLayers};

  FreedMemoryFixture() { folder.write("model.safetensors", model.bytes()); }

  std::string flow() const {
    const std::string path = (folder / "model.safetensors").string();
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 96, "start": 3}})"},
         {"loop",
          R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": 12}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }

  struct Done {
    std::vector<float> values;
    std::vector<std::uint64_t> made;  // weights, by step
  };
  // `foreign`: what another program holds after each step, from 0.
  Done run(const std::function<std::uint64_t(int step)>& foreign) {
    EngineOptions o = test::fake_engine_options({"fake:0"}, R"({"memory": 1048576})");
    o.reserves["fake:0"] = std::uint64_t{0};
    o.memory_poll_seconds = 0;
    control->reset();
    control->set_foreign_bytes(0, kForeign);
    Engine engine(o);
    Done done;
    std::uint64_t before = 0;
    const auto observe = [&](const Event& event) {
      if (event.kind != Event::Kind::node_progress || event.node != "loop") return;
      control->set_foreign_bytes(0, foreign(int(done.made.size())));
      const std::uint64_t now = control->weights(0);
      done.made.push_back(now - before);
      before = now;
    };
    Run run = engine.start(engine.parse(flow()), {.observer = observe, .fetch = {"keep.out"}});
    done.values = run.wait().floats("keep.out");
    BOOST_TEST(done.made.size() == std::size_t(kSteps));
    BOOST_TEST(control->freed_in_use(0) == 0u);
    BOOST_TEST(model.gives(done.values, 3, kSteps));
    return done;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(freed_memory, FreedMemoryFixture)

BOOST_AUTO_TEST_CASE(what_comes_free_has_to_be_notable_and_to_stay_for_two_steps) {
  const std::vector<std::uint64_t> streamed{800};
  const auto look = [&](FreedMemory& freed, std::uint64_t usable, std::uint32_t left = 9) {
    return freed.is_worth_it(std::vector<std::uint64_t>{usable}, streamed, left);
  };
  FreedMemory freed;
  freed.begin({1000});
  for (int i = 0; i < 4; ++i) BOOST_TEST(!look(freed, 1099));
  BOOST_TEST(!look(freed, 1100));
  BOOST_TEST(!look(freed, 1000));  // it went again
  BOOST_TEST(!look(freed, 1100));
  BOOST_TEST(look(freed, 1200));

  FreedMemory late;
  late.begin({1000});
  BOOST_TEST(!look(late, 5000, 2));
  BOOST_TEST(!look(late, 5000, 1));  // nothing would be saved any more
}

BOOST_AUTO_TEST_CASE(each_time_it_has_to_stay_for_twice_as_many_steps) {
  const std::vector<std::uint64_t> streamed{8};
  FreedMemory freed;
  std::uint64_t usable = 100;
  for (int wanted = 2; wanted <= 16; wanted *= 2) {
    freed.begin({usable++});
    for (int i = 1; i <= wanted; ++i)
      BOOST_TEST(freed.is_worth_it(std::vector<std::uint64_t>{usable}, streamed, 99) ==
                 (i == wanted));
  }
}

BOOST_AUTO_TEST_CASE(only_what_comes_free_where_something_is_streamed_counts) {
  const std::vector<std::uint64_t> streamed{0, 64};
  FreedMemory freed;
  freed.begin({10, 10});
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(!freed.is_worth_it(std::vector<std::uint64_t>{1000, 10}, streamed, 9));
  BOOST_TEST(!freed.is_worth_it(std::vector<std::uint64_t>{1000, 20}, streamed, 9));
  BOOST_TEST(freed.is_worth_it(std::vector<std::uint64_t>{10, 20}, streamed, 9));
}

BOOST_AUTO_TEST_CASE(a_run_that_streams_uses_what_another_program_frees_while_it_runs) {
  const Done tight = run([](int) { return kForeign; });
  for (int step = 2; step < kSteps - 1; ++step)
    BOOST_TEST(tight.made[std::size_t(step)] > kLayers / 4u);  // it streams to the end
  const Done freed = run([](int step) { return step < 3 ? kForeign : 0; });
  BOOST_TEST((freed.values == tight.values));
  for (int step = 1; step < 4; ++step)
    BOOST_TEST(freed.made[std::size_t(step)] == tight.made[std::size_t(step)]);
  for (int step = 7; step < kSteps; ++step) BOOST_TEST(freed.made[std::size_t(step)] == 0u);
}

BOOST_AUTO_TEST_CASE(a_run_does_not_follow_a_program_that_takes_and_frees_all_the_time) {
  const Done tight = run([](int) { return kForeign; });
  const Done changing = run([](int step) { return step % 2 == 0 ? 0 : kForeign; });
  BOOST_TEST((changing.values == tight.values));
  BOOST_TEST(changing.made == tight.made, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(memory_that_goes_again_before_it_can_be_used_fails_nothing) {
  const Done tight = run([](int) { return kForeign; });
  // Gone between the look and the set-up: the driver says it is there, and refuses it.
  for (const std::uint64_t nth : {1, 2, 3}) {
    bool is_set = false;
    const Done done = run([&](int step) {
      if (step == 5 && !is_set) control->fail_allocs(0, nth, 2), is_set = true;
      return step < 4 ? kForeign : 0;
    });
    BOOST_TEST((done.values == tight.values));
  }
}

BOOST_AUTO_TEST_SUITE_END()
