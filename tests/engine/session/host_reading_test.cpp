// What sessions read from files: once, ahead of its use, and nothing of what a device has already.
#include <boost/test/unit_test.hpp>

#include "engine/resources/timeline.h"
#include "tests/support/layers_on_host.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(host_reading)

namespace {

constexpr int kWide = 96, kDeep = 24;  // weights of 36 KiB
constexpr std::uint64_t kAll = std::uint64_t{kDeep} * kWide * kWide * 4;
constexpr std::uint32_t kSteps = 3;

engine::CallPlacement alone(const engine::Model&) {
  return {engine::ParallelMode::none, {0}, {}, {}, {}};
}
engine::CallPlacement two_sets(const engine::Model&) {
  return {engine::ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}};
}
const auto kNever = [] { return false; };

// `pinned`: of the limit, for copies.
struct Reading : test::LayersOnHost {
  Reading(const std::vector<std::string>& devices, std::uint64_t limit, std::uint64_t pinned)
      : LayersOnHost(
            devices, kWide, kDeep, limit,
            {.pinned_bytes = pinned, .staging_bytes = pinned / 4, .piece_bytes = 16 << 10}) {}

  std::vector<std::byte> run(
      const std::function<engine::CallPlacement(const engine::Model&)>& parallelize,
      std::vector<std::uint64_t> budgets = {}, engine::Timeline* timeline = nullptr) {
    auto opened =
        layers.open(kSteps, 2, parallelize, kNever, {std::move(budgets), {}, timeline, 1});
    for (std::uint32_t i = 0; i < kSteps; ++i) opened.step(i);
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
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_second_run_and_a_second_device_read_nothing) {
  Reading reading({"fake:0", "fake:1"}, 4 * kAll, 2 * kAll);
  const std::vector<std::byte> once = reading.run(alone);
  BOOST_TEST(reading.host.report().read_first == kAll);
  BOOST_TEST((reading.run(alone) == once));
  BOOST_TEST((reading.run(two_sets) == once));
  BOOST_TEST(reading.host.report().read_first == kAll);
  BOOST_TEST(reading.host.report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(streamed_weights_are_read_once_where_the_host_has_room) {
  const std::vector<std::byte> good = Reading({"fake:0"}, 4 * kAll, 0).run(alone);
  for (const std::uint64_t pinned : {std::uint64_t{0}, kAll / 2, 2 * kAll}) {
    Reading reading({"fake:0"}, 4 * kAll, pinned);
    BOOST_TEST((reading.run(alone, {kAll / 2}) == good));
    BOOST_TEST(reading.host.report().read_first == kAll);
    BOOST_TEST(reading.host.report().read_again == 0u);
    BOOST_TEST((reading.run(alone, {kAll / 2}) == good));
    BOOST_TEST(reading.host.report().read_again == 0u);
  }
}

BOOST_AUTO_TEST_CASE(beyond_the_limit_only_what_was_let_go_is_read_again) {
  const std::vector<std::byte> good = Reading({"fake:0"}, 4 * kAll, 0).run(alone);
  for (const char* device : {"fake:0", "cpu:0"}) {
    const std::uint64_t limit = kAll / 3;
    Reading reading({device}, limit, device[0] == 'f' ? limit / 2 : 0);
    BOOST_TEST((reading.run(alone, {kAll / 2}) == good));
    const engine::HostReport report = reading.host.report();
    BOOST_TEST(report.peak <= limit);
    BOOST_TEST(report.read_again <= report.evicted);
    BOOST_TEST(report.read_first == kAll);
  }
}

BOOST_AUTO_TEST_CASE(a_timeline_has_a_row_of_what_was_read) {
  Reading reading({"fake:0"}, 4 * kAll, 2 * kAll);
  engine::Timeline timeline(reading.layers.runs.environment().devices);
  reading.run(alone, {}, &timeline);
  std::uint64_t read = 0;
  for (const engine::TimelineSpan& span : timeline.finish()) {
    if (span.kind != "read") continue;
    BOOST_TEST(span.process == "host");
    BOOST_TEST(span.thread.starts_with("disk"));
    BOOST_TEST(span.name.starts_with("layers."));
    BOOST_TEST(span.end >= span.begin);
    read += span.bytes;
  }
  BOOST_TEST(read == kAll);
}

BOOST_AUTO_TEST_SUITE_END()
