// A hundred sessions of one engine, streamed and divided, cancelled at any question; and others who
// take and free a device's memory meanwhile. Nothing grows, and what finishes is right.
#include <boost/test/unit_test.hpp>
#include <random>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/counting_allocator.h"
#include "tests/support/layers_model.h"
#include "tests/support/memory_use.h"

using namespace heddle;
using engine::CallPlacement;
using engine::Model;
using engine::ParallelMode;
using test::LayersModel;

BOOST_AUTO_TEST_SUITE(many_cancels)

namespace {

constexpr int kWide = 80, kDeep = 6;  // weights of 25 KiB
constexpr std::uint64_t kWeight = std::uint64_t{kWide} * kWide * 4, kMemory = 1 << 20;
constexpr std::uint32_t kSteps = 3, kSets = 2, kDevices = 2;

using Parallelize = CallPlacement (*)(const Model&);
CallPlacement alone(const Model&) { return {ParallelMode::none, {0}, {}, {}, {}}; }
CallPlacement halves(const Model& model) { return test::layers(model, {0, 1}, {1, 1}); }
CallPlacement two_sets(const Model&) { return {ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}}; }
constexpr Parallelize kWays[] = {alone, halves, two_sets};

struct Sessions {
  const test::FakeControl control;
  test::CountingAllocator host;
  LayersModel layers;

  explicit Sessions(const std::string& more)
      : layers({"fake:0", "fake:1"}, engine::cat(R"({"memory": )", kMemory, more, "}"), kWide,
               kDeep) {}

  // `asked` is called with every question whether the session is cancelled. Empty: it was.
  std::vector<std::byte> step_through(Parallelize parallelize, std::uint64_t budget,
                                      const std::function<bool()>& asked) {
    auto opened =
        layers.open(kSteps, kSets, parallelize, asked, {{budget, budget}, {}, nullptr, 1});
    try {
      for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == engine::Code::cancelled), error.full());
      return {};
    }
    least = opened.session->plan()->min_bytes(0);
    is_streamed = !opened.session->plan()->pages.empty();
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
  test::MemoryInUse held() {
    layers.used();
    return test::memory_in_use(layers.runs.environment(), host.live_bytes());
  }
  std::uint64_t least = 0;   // bytes, of the last session that finished
  bool is_streamed = false;  // it was
};

const auto kNever = [] { return false; };

void cancel_a_hundred_sessions(const std::string& options) {
  Sessions sessions(options);
  const std::vector<std::byte> good = sessions.step_through(alone, engine::kNoLimit, kNever);
  const std::uint64_t budget = sessions.least + 2 * kWeight;
  int questions[std::size(kWays)] = {};
  for (std::size_t w = 0; w < std::size(kWays); ++w) {
    const auto ask = [&] { return ++questions[w] < 0; };
    BOOST_TEST((sessions.step_through(kWays[w], budget, ask) == good));
    BOOST_TEST(sessions.is_streamed);
  }
  const test::MemoryInUse before = sessions.held();
  std::mt19937 random(5);
  for (int run = 1; run <= 100; ++run) {
    const std::size_t way = random() % std::size(kWays);
    const int last = 1 + int(random() % unsigned(questions[way]));
    int asked = 0;
    BOOST_TEST_INFO("run " << run << ", way " << way << ", cancelled at question " << last);
    BOOST_TEST(sessions.step_through(kWays[way], budget, [&] { return ++asked >= last; }).empty());
    if (run % 10 == 0) BOOST_TEST((sessions.step_through(kWays[way], budget, kNever) == good));
  }
  BOOST_TEST(sessions.held() == before);
  for (const Parallelize way : kWays)
    BOOST_TEST((sessions.step_through(way, budget, kNever) == good));
  BOOST_TEST(sessions.held() == before);
  for (std::uint32_t d = 0; d < kDevices; ++d) BOOST_TEST(sessions.control->freed_in_use(d) == 0u);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_hundred_cancelled_sessions_leave_nothing_and_the_next_ones_are_right) {
  cancel_a_hundred_sessions("");
}

BOOST_AUTO_TEST_CASE(a_hundred_cancelled_sessions_on_devices_that_work_late_and_apart) {
  cancel_a_hundred_sessions(R"(, "shuffle": 9, "peer": false)");
}

// A hundred whole runs, cancelled by their own progress.
BOOST_AUTO_TEST_CASE(a_hundred_runs_of_which_half_are_cancelled_between_steps) {
  Sessions sessions("");
  std::mt19937 random(6);
  Parallelize way = alone;
  const std::string flow = sessions.layers.flow(4, kSets);
  auto& environment = sessions.layers.runs.environment();
  const auto run = [&](int last) {
    environment.cache.clear();
    environment.place_call = [&](const engine::Node&, std::uint32_t, const Model& model,
                                 const engine::CallSpec&) { return way(model); };
    engine::RunControl control;
    int reported = 0;
    sessions.layers.runs.on_progress = [&] {
      if (++reported == last) control.cancel();
    };
    try {
      return sessions.layers.runs.start(flow, "loop", control);
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == engine::Code::cancelled), error.full());
      return std::vector<std::byte>();
    }
  };
  const std::vector<std::byte> good = run(0);
  const engine::Ledger::Cap cap(sessions.layers.state(0).ledger(), 6 * kWeight);
  const test::MemoryInUse before = sessions.held();
  for (int i = 0; i < 100; ++i) {
    way = kWays[random() % std::size(kWays)];
    const int last = i % 2 == 0 ? 1 + int(random() % 3) : 0;
    BOOST_TEST((run(last) == (last == 0 ? good : std::vector<std::byte>())));
  }
  BOOST_TEST(sessions.held() == before);
}

// Somebody else takes and frees what a session is not in need of, whenever it asks whether to go
// on: between two questions to the driver as well as before them.
BOOST_AUTO_TEST_CASE(others_who_take_and_free_memory_at_any_moment_are_never_told_to_the_user) {
  Sessions sessions("");
  std::mt19937 random(7);
  const std::vector<std::byte> good = sessions.step_through(alone, engine::kNoLimit, kNever);
  int replanned = 0;
  for (const Parallelize way : kWays)
    for (int run = 0; run < 15; ++run) {
      sessions.control->set_foreign_bytes(0, 0);
      sessions.control->set_foreign_bytes(1, 0);
      sessions.held();
      BOOST_TEST_REQUIRE((sessions.step_through(way, kMemory, kNever) == good));
      sessions.held();
      // What is left free in any case, the sets' tensors, and what pools share.
      const std::uint64_t headroom = sessions.layers.state(0).ledger().headroom();
      const std::uint64_t most = kMemory - headroom - sessions.least - 2 * kWeight;
      const auto others = [&] {
        const std::uint32_t device = random() % kDevices;
        if (random() % 3 == 0) sessions.control->set_foreign_bytes(device, random() % (most + 1));
        return false;
      };
      BOOST_TEST_INFO("run " << run);
      std::vector<std::byte> bytes;
      try {
        bytes = sessions.step_through(way, kMemory, others);
      } catch (const engine::Error& error) {
        BOOST_ERROR(error.full());
      }
      BOOST_TEST((bytes == good));
      replanned += sessions.is_streamed ? 1 : 0;
    }
  BOOST_TEST_MESSAGE("  " << replanned << " of 45 went on with less");
  for (std::uint32_t d = 0; d < kDevices; ++d) BOOST_TEST(sessions.control->freed_in_use(d) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
