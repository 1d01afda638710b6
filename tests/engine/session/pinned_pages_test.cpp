// Streamed weights come from pinned memory as far as it goes, and a step takes what was planned of
// it: on devices whose copies from other memory take longer.
#include <boost/test/unit_test.hpp>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_on_host.h"

using namespace heddle;
using engine::CallPlacement;
using engine::Model;
using engine::ParallelMode;
using engine::SessionPlan;

BOOST_AUTO_TEST_SUITE(pinned_pages)

namespace {

constexpr int kWide = 96, kDeep = 24;  // weights of 36 KiB: too large to stay in any case
constexpr std::uint64_t kWeight = std::uint64_t{kWide} * kWide * 4;
constexpr std::uint32_t kSteps = 12;
// A matrix takes a millisecond, its copy half of that from pinned memory and four without.
constexpr double kFlops = 2.0 * kWide * kWide / 1e-3;
constexpr double kPinned = double(kWeight) / 0.5e-3, kPageable = double(kWeight) / 4e-3;

CallPlacement alone(const Model&) { return {ParallelMode::none, {0}, {}, {}, {}}; }
CallPlacement two_sets(const Model&) { return {ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}}; }

struct Streamed {
  SessionPlan::Needs needs;  // of the first place
  double step_seconds = 0;   // by the simulated clock, in the long run
  std::uint64_t pinned = 0;  // bytes that the devices hold
};

// With room for the activations and `part` of the weights on each device.
Streamed stream(const std::function<CallPlacement(const Model&)>& parallelize,
                std::uint32_t devices, double part, std::uint64_t pinned,
                std::uint32_t steps = kSteps) {
  const test::FakeControl control;
  // What is beyond the limit is copied as it lies, with no pinned buffer between.
  test::LayersOnHost on(
      {"fake:0", "fake:1"}, kWide, kDeep, engine::HostBudget::kUnlimited, {.pinned_bytes = pinned},
      engine::cat(R"({"flops": )", kFlops, R"(, "bandwidth": 1e15, "launch_seconds": 1e-9,)",
                  R"( "links": {"host": {"bandwidth": )", kPinned,
                  R"(, "latency": 1e-9}, "pageable": {"bandwidth": )", kPageable,
                  R"(, "latency": 1e-9}}})"));
  const auto never = [] { return false; };
  test::SessionLimits limits;
  limits.rates = {kFlops, 1e15, 1e-9};
  limits.rates.from_host = {kPageable, 1e-9};
  limits.rates.from_pinned = {kPinned, 1e-9};
  limits.pinned_bytes = on.host.most_pinned();
  limits.budgets.assign(devices, engine::kNoLimit - 1);
  std::uint64_t others = 0;
  {
    auto opened = on.layers.open(steps, devices, parallelize, never, limits);
    opened.step(0);
    others = opened.session->plan()->need_bytes(0) - kDeep * kWeight;
  }
  for (std::uint32_t d = 0; d < devices; ++d) {
    on.layers.state(d).settle();
    on.layers.runs.environment().devices[d].weights->drop_all();
  }
  on.host.evict(engine::HostBudget::kUnlimited);
  limits.budgets.assign(devices, others + std::uint64_t(double(kDeep * kWeight) * part));
  auto opened = on.layers.open(steps, devices, parallelize, never, limits);
  std::vector<double> ends;
  for (std::uint32_t i = 0; i < steps; ++i) {
    opened.step(i);
    ends.push_back(control->now(0));
  }
  Streamed done{opened.session->plan()->needs[0], 0, 0};
  if (steps == kSteps) done.step_seconds = (ends[10] - ends[4]) / 6;
  for (std::uint32_t d = 0; d < devices; ++d) done.pinned += control->pinned_bytes(d);
  return done;
}

}  // namespace

BOOST_AUTO_TEST_CASE(plan_and_clock_agree_on_what_is_pinned_and_what_is_not) {
  for (const double part : {0.2, 0.6})
    for (const std::uint64_t room : {0u, 5u, 100u})
      BOOST_TEST_CONTEXT(part << " of the weights stay, " << room << " may be pinned") {
        const Streamed done = stream(alone, 1, part, room * kWeight);
        const std::uint64_t pages = done.needs.step_page_bytes / kWeight;
        BOOST_TEST_REQUIRE(pages > 5u);
        const std::uint64_t pinned = std::min(room, pages);
        BOOST_TEST(done.needs.unpinned_page_bytes == (pages - pinned) * kWeight);
        BOOST_TEST(done.pinned == pinned * kWeight);
        BOOST_TEST(done.step_seconds == done.needs.step_seconds,
                   boost::test_tools::tolerance(0.05));
        const double copies = double(pinned) * 0.5e-3 + double(pages - pinned) * 4e-3;
        BOOST_TEST(done.step_seconds >= 0.99 * std::max(copies, kDeep * 1e-3));
      }
}

BOOST_AUTO_TEST_CASE(devices_that_stream_the_same_weights_share_what_is_pinned) {
  const std::uint64_t room = 12;
  const Streamed one = stream(alone, 1, 0.5, room * kWeight);
  const Streamed two = stream(two_sets, 2, 0.5, room * kWeight);
  BOOST_TEST(two.needs.unpinned_page_bytes == one.needs.unpinned_page_bytes);
  BOOST_TEST(two.pinned == one.pinned);
  // Which of them are pinned is up to who asks first, and so is what hides behind computing.
  BOOST_TEST(two.step_seconds <= 1.2 * two.needs.step_seconds);
}

BOOST_AUTO_TEST_CASE(what_is_read_in_one_step_only_is_not_planned_as_pinned) {
  const Streamed done = stream(alone, 1, 0.5, 100 * kWeight, 1);
  const double copies = double(done.needs.step_page_bytes) / kPageable;
  BOOST_TEST(copies > kDeep * 1e-3);
  BOOST_TEST(done.needs.step_seconds == copies, boost::test_tools::tolerance(0.1));
}

BOOST_AUTO_TEST_SUITE_END()
