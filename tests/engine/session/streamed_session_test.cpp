// Sessions whose weights find no room: the same bytes, as many copies as were planned, no more
// memory than was allowed, and copies that hide behind computing.
#include <boost/test/unit_test.hpp>
#include <numeric>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::CallPlacement;
using engine::Model;
using engine::ParallelMode;
using engine::SessionPlan;
using test::LayersModel;

BOOST_AUTO_TEST_SUITE(streamed_session)

namespace {

constexpr int kWide = 96, kDeep = 24;  // weights of 36 KiB: too large to stay in any case
constexpr std::uint64_t kWeight = std::uint64_t{kWide} * kWide * 4;
constexpr std::uint32_t kSteps = 4;
constexpr std::int64_t kItems = 2;

test::SessionLimits limits(std::vector<std::uint64_t> budgets, engine::DeviceRates rates = {},
                           engine::Timeline* timeline = nullptr) {
  return {std::move(budgets), rates, timeline, kItems};
}

struct Way {
  const char* name;
  std::function<CallPlacement(const Model&)> parallelize;
  std::uint32_t devices;
};

CallPlacement alone(const Model&) { return {ParallelMode::none, {0}, {}, {}, {}}; }
CallPlacement halves(const Model& model) {
  CallPlacement placement{ParallelMode::layers, {0, 1}, {}, {}, {}};
  const std::size_t count = model.graph->nodes.size();
  for (std::size_t n = 0; n < count; ++n) placement.of_block.push_back(n < count / 2 ? 0 : 1);
  return placement;
}
CallPlacement two_sets(const Model&) { return {ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}}; }
CallPlacement batch(const Model&) { return {ParallelMode::data, {0, 1}, {}, {}, {0.5, 0.5}}; }

const Way kWays[] = {
    {"alone", alone, 1}, {"layers", halves, 2}, {"sets", two_sets, 2}, {"batch", batch, 2}};

std::vector<std::byte> bytes_of(LayersModel& layers, const LayersModel::Opened& opened) {
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

const auto kNever = [] { return false; };

// What a session did, on fresh devices.
struct Done {
  std::vector<std::byte> bytes;
  std::vector<SessionPlan::Needs> needs;        // by device slot
  std::vector<std::uint64_t> all, least;        // by device slot: bytes
  std::vector<std::uint64_t> copied, made;      // by device: bytes from the host, weights
  std::vector<std::uint64_t> pages, residents;  // by device
  std::vector<std::uint64_t> peak;              // by device: bytes more than before it
};

Done step_through(const Way& way, std::vector<std::uint64_t> budgets,
                  const std::string& options = "{}") {
  const test::FakeControl control;
  LayersModel layers({"fake:0", "fake:1"}, options, kWide, kDeep);
  auto opened = layers.open(kSteps, 2, way.parallelize, kNever, limits(std::move(budgets)));
  std::vector<std::uint64_t> before;
  for (std::uint32_t d = 0; d < way.devices; ++d) {
    layers.state(d).settle();
    before.push_back(layers.state(d).memory_use().used);
  }
  control->reset();
  for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
  Done done;
  done.bytes = bytes_of(layers, opened);
  const SessionPlan& plan = *opened.session->plan();
  done.needs = plan.needs;
  for (std::uint32_t d = 0; d < way.devices; ++d) {
    done.all.push_back(plan.need_bytes(d));
    done.least.push_back(plan.min_bytes(d));
    done.copied.push_back(control->bytes_copied(HEDDLE_FAKE_HOST, d));
    done.made.push_back(control->weights(d));
    done.peak.push_back(layers.state(d).memory_use().peak - before[d]);
    std::uint64_t residents = 0, pages = 0;
    for (const engine::SessionStorage& s : plan.storages) {
      residents += s.device_slot == d && s.kind == engine::SessionStorage::Kind::weight ? 1 : 0;
      pages += s.device_slot == d && s.kind == engine::SessionStorage::Kind::page ? 1 : 0;
    }
    done.residents.push_back(residents);
    done.pages.push_back(pages);
  }
  return done;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_budget_changes_no_byte_and_copies_are_as_planned) {
  const std::vector<std::byte> good = step_through(kWays[0], {}).bytes;
  for (const Way& way : kWays) {
    const Done whole = step_through(way, {engine::kNoLimit - 1, engine::kNoLimit - 1});
    for (const double part : {1.0, 0.6, 0.3, 0.0}) BOOST_TEST_CONTEXT(way.name << ", " << part) {
        std::vector<std::uint64_t> budgets;
        for (std::uint32_t d = 0; d < way.devices; ++d)
          budgets.push_back(std::max(whole.least[d], std::uint64_t(double(whole.all[d]) * part)));
        const Done done = step_through(way, budgets);
        BOOST_TEST((done.bytes == good));
        for (std::uint32_t d = 0; d < way.devices; ++d) {
          BOOST_TEST(done.peak[d] <= budgets[d]);
          BOOST_TEST((done.pages[d] == 0) == (part == 1.0));
          BOOST_TEST(done.made[d] == done.residents[d] + kSteps * done.pages[d]);
          BOOST_TEST(done.needs[d].step_page_bytes == done.pages[d] * kWeight);
          BOOST_TEST(done.copied[d] ==
                     done.residents[d] * kWeight + kSteps * done.needs[d].step_page_bytes);
          if (part == 0.0) BOOST_TEST(done.residents[d] == 0u);
        }
      }
  }
}

BOOST_AUTO_TEST_CASE(one_byte_under_the_least_is_refused_with_the_least) {
  for (const Way& way : kWays) {
    const Done whole = step_through(way, {engine::kNoLimit - 1, engine::kNoLimit - 1});
    for (std::uint32_t d = 0; d < way.devices; ++d) {
      std::vector<std::uint64_t> budgets = whole.least;
      --budgets[d];
      BOOST_CHECK_EXCEPTION(
          step_through(way, budgets), engine::Error, [&](const engine::Error& error) {
            const std::string text = error.full();
            BOOST_TEST_INFO(text);
            for (const std::string& part :
                 {engine::cat("fake:", d), engine::cat("(", budgets[d], " bytes)"),
                  engine::cat("(", whole.least[d], " bytes)"), std::string("layer.")})
              BOOST_TEST(text.find(part) != std::string::npos, part);
            return error.code() == engine::Code::out_of_memory;
          });
    }
  }
}

BOOST_AUTO_TEST_CASE(steps_may_come_again_and_in_any_order) {
  const auto run = [](std::vector<std::uint64_t> budgets) {
    LayersModel layers({"fake:0"}, "{}", kWide, kDeep);
    auto opened = layers.open(3, 1, alone, kNever, limits(std::move(budgets)));
    for (const std::uint32_t index : {0u, 2u, 2u, 1u, 0u, 1u, 2u}) opened.step(index);
    return bytes_of(layers, opened);
  };
  const Done whole = step_through(kWays[0], {engine::kNoLimit - 1});
  BOOST_TEST((run({whole.least[0]}) == run({})));
  BOOST_TEST((run({(whole.least[0] + whole.all[0]) / 2}) == run({})));
}

// Work runs as late and in as random an order as streams and events allow.
BOOST_AUTO_TEST_CASE(sessions_cancelled_while_they_stream_leave_the_next_one_its_bytes) {
  const test::FakeControl control;
  for (const Way& way : kWays) {
    const Done whole = step_through(way, {engine::kNoLimit - 1, engine::kNoLimit - 1});
    std::vector<std::uint64_t> budgets;
    for (std::uint32_t d = 0; d < way.devices; ++d) budgets.push_back(whole.least[d] + 2 * kWeight);
    for (int seed = 0; seed < 3; ++seed) {
      LayersModel layers({"fake:0", "fake:1"}, engine::cat(R"({"shuffle": )", seed, "}"), kWide, 9);
      int asked = 0, limit = 1 << 20;
      const auto run = [&] {
        asked = 0;
        auto opened = layers.open(
            2, 2, way.parallelize, [&] { return ++asked >= limit; }, limits(budgets));
        try {
          for (std::uint32_t i = 0; i < 2; ++i) opened.step(i);
        } catch (const engine::Error& error) {
          BOOST_TEST((error.code() == engine::Code::cancelled), error.full());
          return std::vector<std::byte>();
        }
        for (std::uint32_t d = 0; d < way.devices; ++d)
          BOOST_TEST(opened.session->plan()->needs[d].step_page_bytes > 0u);
        return bytes_of(layers, opened);
      };
      const std::vector<std::byte> good = run();
      BOOST_TEST_REQUIRE(!good.empty());
      const int all = asked;
      const auto before = layers.used();
      for (int nth = test::first_of_stride(seed); nth <= all; nth += test::kStride) {
        limit = nth;
        BOOST_TEST(run().empty());
        for (std::uint32_t d = 0; d < 2; ++d) layers.state(d).settle();
        limit = 1 << 20;
        if (nth % 5 == 0) BOOST_TEST((run() == good));
      }
      BOOST_TEST(layers.used() == before, boost::test_tools::per_element());
      for (std::uint32_t d = 0; d < 2; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
    }
  }
}

// A matrix takes a millisecond; everything else next to nothing.
BOOST_AUTO_TEST_CASE(copies_hide_behind_computing_on_the_simulated_clock) {
  constexpr double kFlops = 2.0 * kItems * kWide * kWide / 1e-3;
  const std::vector<double> ratios{0.1, 0.5, 1.0, 2.0, 10.0};
  for (std::size_t r = test::kStride - 1; r < ratios.size(); r += test::kStride)
    for (const double part : {0.2, 0.6}) BOOST_TEST_CONTEXT("ratio " << ratios[r] << ", " << part) {
        const double bandwidth = double(kWeight) / (ratios[r] * 1e-3);
        const test::FakeControl control;
        LayersModel layers(
            {"fake:0"},
            engine::cat(R"({"flops": )", kFlops, R"(, "bandwidth": 1e15,)",
                        R"( "launch_seconds": 1e-9, "links": {"host": {"bandwidth": )", bandwidth,
                        R"(, "latency": 1e-9}}})"),
            kWide, kDeep);
        engine::DeviceRates rates{kFlops, 1e15, 1e-9};
        rates.from_host = {bandwidth, 1e-9};
        const Done whole = step_through(kWays[0], {engine::kNoLimit - 1});
        const std::uint64_t others = whole.all[0] - kDeep * kWeight;
        const std::uint64_t budget = others + std::uint64_t(double(kDeep * kWeight) * part);
        constexpr std::uint32_t kMany = 12;
        auto opened = layers.open(kMany, 1, alone, kNever, limits({budget}, rates));
        std::vector<double> ends;
        for (std::uint32_t i = 0; i < kMany; ++i) {
          opened.step(i);
          ends.push_back(control->now(0));
        }
        const double step = (ends[10] - ends[4]) / 6;
        const SessionPlan::Needs& needs = opened.session->plan()->needs[0];
        const double compute = kDeep * 1e-3, copy = double(needs.step_page_bytes) / bandwidth;
        BOOST_TEST(copy > 0);
        BOOST_TEST(step <= 1.10 * std::max(compute, copy),
                   step << " s for " << compute << " of computing, " << copy << " of copying");
        BOOST_TEST(step == needs.step_seconds, boost::test_tools::tolerance(0.05));
      }
}

// A device that takes no part keeps what passes, as far as half of its room goes.
BOOST_AUTO_TEST_CASE(weights_come_from_an_idle_device_before_host_memory) {
  const test::FakeControl control;
  const Done whole = step_through(kWays[0], {engine::kNoLimit - 1});
  for (const std::uint64_t lent : {0u, 6u, 100u}) BOOST_TEST_CONTEXT("room for " << lent) {
      LayersModel layers({"fake:0", "fake:1"}, "{}", kWide, kDeep);
      test::SessionLimits small = limits({whole.least[0]});
      small.donor = 1;
      small.donor_available = lent * kWeight;
      auto opened = layers.open(kSteps, 2, alone, kNever, small);
      control->reset();
      for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
      BOOST_TEST((bytes_of(layers, opened) == whole.bytes));
      const SessionPlan::Needs& needs = opened.session->plan()->needs[0];
      const std::uint64_t pages = std::min<std::uint64_t>(lent, kDeep);
      BOOST_TEST(needs.donor_page_bytes == pages * kWeight);
      BOOST_TEST(control->weights(1) == pages);
      BOOST_TEST(control->bytes_copied(1, 0) == kSteps * pages * kWeight);
      BOOST_TEST(control->bytes_copied(HEDDLE_FAKE_HOST, 0) == kSteps * (kDeep - pages) * kWeight);
    }
}

BOOST_AUTO_TEST_CASE(a_lender_that_has_no_room_after_all_is_done_without) {
  const test::FakeControl control;
  const Done whole = step_through(kWays[0], {engine::kNoLimit - 1});
  LayersModel layers({"fake:0", "fake:1"}, "{}", kWide, kDeep);
  test::SessionLimits small = limits({whole.least[0]});
  small.donor = 1;
  small.donor_available = kDeep * kWeight;
  auto opened = layers.open(kSteps, 2, alone, kNever, small);
  control->reset();
  control->set_foreign_bytes(1, std::uint64_t{16} << 30);
  for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
  BOOST_TEST((bytes_of(layers, opened) == whole.bytes));
  BOOST_TEST(control->bytes_copied(HEDDLE_FAKE_HOST, 0) == kSteps * kDeep * kWeight);
}

BOOST_AUTO_TEST_CASE(page_ins_are_seen_on_the_stream_of_copies) {
  const Done whole = step_through(kWays[0], {engine::kNoLimit - 1});
  LayersModel layers({"fake:0"}, "{}", kWide, kDeep);
  engine::Timeline timeline(layers.runs.environment().devices);
  std::size_t pages = 0, planned = 0;
  {
    auto opened = layers.open(kSteps, 1, alone, kNever, limits({whole.least[0]}, {}, &timeline));
    for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
    planned = opened.session->plan()->pages.size();
  }
  for (const engine::TimelineSpan& span : timeline.finish()) {
    if (span.kind != "page-in") continue;
    BOOST_TEST(span.thread == "copy in");
    BOOST_TEST(span.bytes == kWeight);
    BOOST_TEST(span.name.starts_with("layer."));
    ++pages;
  }
  BOOST_TEST(pages == kSteps * planned);
}

BOOST_AUTO_TEST_SUITE_END()
