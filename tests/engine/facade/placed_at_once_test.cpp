// Runs that begin at the same moment, on several threads: each is placed with the others in view.
#include <barrier>
#include <latch>
#include <map>
#include <thread>

#include "tests/engine/facade/stepped_runs.h"

namespace heddle {

using test::SteppedRuns;
using test::Steps;

BOOST_AUTO_TEST_SUITE(placed_at_once)

// None of them takes a step before all have been placed, and none finds its result in the cache.
BOOST_AUTO_TEST_CASE(runs_that_begin_at_once_are_shared_out_evenly) {
  constexpr int kRuns = 12, kRounds = 10;
  SteppedRuns f;
  EngineOptions roomy = f.options({"fake:0", "fake:1"});
  roomy.budgets["fake"] = std::uint64_t{1} << 20;
  Engine engine(roomy);
  for (int round = 0; round < kRounds; ++round) {
    std::barrier all(kRuns);
    std::latch placed(kRuns);
    std::mutex mutex;
    std::map<std::vector<std::string>, int> runs;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kRuns; ++i)
        threads.emplace_back([&, i] {
          Steps steps;
          steps.at_step = [&](int) { placed.wait(); };
          StartOptions options{.observer = steps.observer()};
          options.among_many = true;
          all.arrive_and_wait();
          Run run = f.begin(engine, f.a, kRuns * round + i, std::move(options));
          const std::vector<std::string> devices = run.devices();
          placed.count_down();
          run.wait();
          const std::lock_guard lock(mutex);
          ++runs[devices];
        });
    }
    BOOST_TEST_REQUIRE(runs.size() == 2u);
    for (const auto& [devices, count] : runs)
      BOOST_TEST(count == kRuns / 2,
                 "round " << round << ": " << count << " on " << devices.front());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle
