// Steps that devices keep and replay: the same bytes and launches as without, one replay for each
// segment, and failures told as those of launches are.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_model.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::CallPlacement;
using engine::Model;
using engine::ParallelMode;
using test::LayersModel;

BOOST_AUTO_TEST_SUITE(captured_graphs)

namespace {

constexpr std::uint32_t kSteps = 6, kSets = 2;
constexpr std::int64_t kItems = 2;

struct Way {
  const char* name;
  std::function<CallPlacement(const Model&)> parallelize;
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

const Way kWays[] = {{"alone", alone}, {"layers", halves}, {"sets", two_sets}, {"batch", batch}};

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

struct Done {
  std::vector<std::byte> bytes;
  std::size_t captured_graphs = 0;
  std::uint64_t launches = 0, replays = 0;  // of all devices
};

// `steps`: which are made, of a session of as many.
Done step_through(const Way& way, const std::vector<std::uint32_t>& steps,
                  const std::vector<std::string>& devices, engine::Timeline* timeline = nullptr,
                  LayersModel* of = nullptr, std::vector<std::uint64_t> budgets = {}) {
  const test::FakeControl control;
  std::optional<LayersModel> made;
  LayersModel& layers = of != nullptr ? *of : made.emplace(devices);
  auto opened = layers.open(std::uint32_t(steps.size()), kSets, way.parallelize, kNever,
                            {std::move(budgets), {}, timeline, kItems});
  control->reset();
  for (const std::uint32_t index : steps) opened.step(index);
  Done done{bytes_of(layers, opened), opened.session->captured_graphs(), 0, 0};
  for (std::uint32_t d = 0; d < 2; ++d) {
    done.launches += control->launches(d, nullptr);
    done.replays += control->replays(d);
  }
  return done;
}

const std::vector<std::string> kFakes{"fake:0", "fake:1"};
const std::vector<std::uint32_t> kInOrder{0, 1, 2, 3, 4, 5};

}  // namespace

BOOST_AUTO_TEST_CASE(replayed_steps_give_the_bytes_of_launched_ones) {
  for (const Way& way : kWays) BOOST_TEST_CONTEXT(way.name) {
      const Done launched = step_through(way, kInOrder, {"cpu:0", "cpu:1"});
      BOOST_TEST(launched.captured_graphs == 0u);
      const Done replayed = step_through(way, kInOrder, kFakes);
      BOOST_TEST((replayed.bytes == launched.bytes));
      BOOST_TEST(replayed.captured_graphs > 0u);
      // The first step is launched.
      BOOST_TEST(replayed.replays == (kSteps - 1) * replayed.captured_graphs);
    }
}

BOOST_AUTO_TEST_CASE(a_step_on_one_device_is_one_replay) {
  BOOST_TEST(step_through(kWays[0], kInOrder, kFakes).captured_graphs == 1u);
}

// As much as the device says, as long as the session is open.
BOOST_AUTO_TEST_CASE(captured_graphs_stand_in_the_ledger) {
  const test::FakeControl control;
  LayersModel layers(kFakes);
  const auto held = [&] {
    std::uint64_t bytes = 0;
    for (const engine::LedgerReport::Line& line : layers.state(0).ledger().report().held)
      if (line.kind == engine::MemoryKind::captured_graphs) {
        BOOST_TEST(line.owner.find("layers.safetensors") != std::string::npos, line.owner);
        bytes += line.bytes;
      }
    return bytes;
  };
  {
    auto opened = layers.open(kSteps, kSets, alone, kNever, {{}, {}, nullptr, kItems});
    BOOST_TEST(held() == 0u);
    for (const std::uint32_t index : {0, 1, 2}) opened.step(index);
    BOOST_TEST_REQUIRE(opened.session->captured_graphs() == 1u);
    control->reset();
    opened.step(3);
    layers.state(0).settle();
    // 512 bytes a launch; a step has others, which bring its inputs and take its outputs.
    BOOST_TEST(held() % 512 == 0u);
    BOOST_TEST(held() >= 512u * kSets * LayersModel::kLayers);
    BOOST_TEST(held() <= 512u * control->launches(0, nullptr));
  }
  layers.used();
  BOOST_TEST(held() == 0u);
}

// Those of a session that has ended stay until the device is past their work; they are no room that
// the next one lacks. Here the device is in the last step until the next one has looked.
BOOST_AUTO_TEST_CASE(a_call_that_is_refused_looks_again_when_they_are_done) {
  const test::FakeControl control;
  LayersModel layers(kFakes);
  std::atomic<bool> has_looked = false;
  const auto hold = [](void* until) {
    const auto& is_over = *static_cast<const std::atomic<bool>*>(until);
    test::comes_about([&] { return is_over.load(); });
  };
  const auto held = [&] {
    const auto report = layers.state(0).ledger().report();
    return std::ranges::any_of(report.held, [](const engine::LedgerReport::Line& line) {
      return line.kind == engine::MemoryKind::captured_graphs;
    });
  };
  std::uint64_t least = 0;
  {
    auto opened =
        layers.open(kSteps, kSets, alone, kNever, {{std::uint64_t{1} << 40}, {}, nullptr, kItems});
    for (std::uint32_t index = 0; index + 1 < kSteps; ++index) opened.step(index);
    BOOST_TEST_REQUIRE(opened.session->captured_graphs() == 1u);
    layers.state(0).settle();
    control->call_at_launch(0, 1, hold, &has_looked);
    opened.step(kSteps - 1);
    least = opened.session->plan()->min_bytes(0);
  }
  BOOST_TEST_REQUIRE(held());
  int looks = 0;
  test::SessionLimits limits{{}, {}, nullptr, kItems};
  limits.budget_now = [&] {
    ++looks;
    const bool are_there = held();
    has_looked = true;
    return are_there ? least - 1 : least;
  };
  auto opened = layers.open(kSteps, kSets, alone, kNever, limits);
  opened.step(0);
  BOOST_TEST(looks == 2);
  BOOST_TEST(opened.session->plan()->min_bytes(0) == least);
}

// Whatever stands between two transfers is replayed, be it one launch.
BOOST_AUTO_TEST_CASE(blocks_that_change_devices_are_replayed_each) {
  const auto in_turn = [](const Model& model) {
    CallPlacement placement{ParallelMode::layers, {0, 1}, {}, {}, {}};
    for (std::size_t n = 0; n < model.graph->nodes.size(); ++n)
      placement.of_block.push_back(std::uint32_t(n % 2));
    return placement;
  };
  LayersModel layers(kFakes);
  auto opened = layers.open(kSteps, kSets, in_turn, kNever, {{}, {}, nullptr, kItems});
  const test::FakeControl control;
  for (const std::uint32_t index : {0, 1}) opened.step(index);
  // A segment ends with each transfer that leaves and each wait for one.
  const engine::SessionPlan& plan = *opened.session->plan();
  std::vector<bool> open(2, false);
  std::size_t segments = 0;
  for (const engine::SessionAction& action : plan.phases[2]) {
    using Kind = engine::SessionAction::Kind;
    if (action.kind == Kind::launch) {
      const std::uint32_t device_slot = plan.ops[action.index].device_slot;
      segments += open[device_slot] ? 0 : 1;
      open[device_slot] = true;
    }
    if (action.kind == Kind::transfer) open[plan.transfers[action.index].from] = false;
    if (action.kind == Kind::await) open[plan.transfers[action.index].to] = false;
  }
  BOOST_TEST(opened.session->captured_graphs() == segments);
  BOOST_TEST(segments >= std::size_t(LayersModel::kLayers));
}

BOOST_AUTO_TEST_CASE(every_launch_happens_as_often_as_without_captured_graphs) {
  const auto launches = [](const std::vector<std::uint32_t>& steps) {
    return step_through(kWays[0], steps, kFakes).launches;
  };
  // Three steps are not worth a captured graph; what a step adds stays the same.
  const std::uint64_t two = launches({0, 1}), three = launches({0, 1, 2});
  BOOST_TEST(launches(kInOrder) - two == 4 * (three - two));
}

BOOST_AUTO_TEST_CASE(few_steps_are_launched) {
  BOOST_TEST(step_through(kWays[0], {0, 1, 2}, kFakes).captured_graphs == 0u);
  BOOST_TEST(step_through(kWays[0], {0, 1, 2, 3}, kFakes).captured_graphs == 1u);
}

BOOST_AUTO_TEST_CASE(replayed_steps_may_come_again_and_in_any_order) {
  const std::vector<std::uint32_t> order{0, 3, 3, 1, 0, 5};
  for (const Way& way : kWays)
    BOOST_TEST((step_through(way, order, kFakes).bytes ==
                step_through(way, order, {"cpu:0", "cpu:1"}).bytes),
               way.name);
}

BOOST_AUTO_TEST_CASE(a_timeline_shows_blocks_all_the_same) {
  LayersModel layers(kFakes);
  engine::Timeline timeline(layers.runs.environment().devices);
  const Done watched = step_through(kWays[0], kInOrder, kFakes, &timeline, &layers);
  BOOST_TEST((watched.bytes == step_through(kWays[0], kInOrder, kFakes).bytes));
  std::map<std::string, std::size_t> seen;
  for (const engine::TimelineSpan& span : timeline.finish())
    if (span.kind == "block") ++seen[span.name];
  for (int l = 0; l < LayersModel::kLayers; ++l)
    for (std::uint32_t branch = 0; branch < kSets; ++branch)
      BOOST_TEST(seen[engine::cat("layer.", l, " branch ", branch)] == kSteps);
}

// A replay of the fake device runs one branch as far ahead of the other as what was recorded lets
// it.
BOOST_AUTO_TEST_CASE(branches_at_the_same_time_give_the_same_bytes) {
  const auto drawn = [](bool has_lanes, bool& had_lanes) {
    const test::FakeControl control;
    LayersModel layers(kFakes);
    control->keep_other_streams(has_lanes ? 1 : 0);
    auto opened = layers.open(kSteps, kSets, alone, kNever, {{}, {}, nullptr, kItems});
    for (const std::uint32_t index : kInOrder) opened.step(index);
    had_lanes = opened.session->plan()->arenas[0].has_lanes;
    BOOST_TEST(opened.session->captured_graphs() > 0u);
    const std::vector<std::byte> bytes = bytes_of(layers, opened);
    control->keep_other_streams(0);
    return bytes;
  };
  bool had_lanes = true;
  const std::vector<std::byte> one_by_one = drawn(false, had_lanes);
  BOOST_TEST(!had_lanes);
  BOOST_TEST((drawn(true, had_lanes) == one_by_one));
  BOOST_TEST(had_lanes);
}

BOOST_AUTO_TEST_CASE(a_timeline_of_steps_leaves_them_whole) {
  LayersModel layers(kFakes);
  engine::Timeline timeline(layers.runs.environment().devices, nullptr,
                            engine::Timeline::Detail::steps);
  const Done plain = step_through(kWays[1], kInOrder, kFakes, nullptr, &layers),
             watched = step_through(kWays[1], kInOrder, kFakes, &timeline, &layers);
  BOOST_TEST((watched.bytes == plain.bytes));
  BOOST_TEST(watched.captured_graphs == plain.captured_graphs);
  std::map<std::string, std::size_t> seen;
  for (const engine::TimelineSpan& span : timeline.finish()) ++seen[span.kind + " " + span.process];
  BOOST_TEST(seen["step fake:0"] == kSteps);
  BOOST_TEST(seen["step fake:1"] == kSteps);
  BOOST_TEST(seen["block fake:0"] == 0u);
}

BOOST_AUTO_TEST_CASE(streamed_weights_and_replays_go_together) {
  const std::uint64_t all = engine::kNoLimit - 1;
  LayersModel layers(kFakes, "{}", 96, 24);
  auto opened = layers.open(kSteps, kSets, alone, kNever, {{all}, {}, nullptr, kItems});
  for (const std::uint32_t index : kInOrder) opened.step(index);
  const std::vector<std::byte> good = bytes_of(layers, opened);
  const std::uint64_t least = opened.session->plan()->min_bytes(0),
                      most = opened.session->plan()->need_bytes(0);
  for (const std::uint64_t budget : {least, (least + most) / 2, most})
    BOOST_TEST((step_through(kWays[0], kInOrder, kFakes, nullptr, &layers, {budget}).bytes == good),
               budget << " bytes");
}

// Whatever launch of whatever step fails, it ends in an error, and the session after it is sound.
BOOST_AUTO_TEST_CASE(a_launch_that_fails_in_a_replay_is_told) {
  const test::FakeControl control;
  LayersModel layers(kFakes);
  const Done good = step_through(kWays[1], kInOrder, kFakes, nullptr, &layers);
  std::uint64_t reported = 0;
  for (std::uint64_t nth = 1; nth < good.launches / 2; nth += 3 * test::kStride) {
    auto opened = layers.open(kSteps, kSets, halves, kNever, {{}, {}, nullptr, kItems});
    control->reset();
    control->fail_launch(0, nth);
    try {
      for (const std::uint32_t index : kInOrder) opened.step(index);
      bytes_of(layers, opened);
      BOOST_TEST(control->faults(0) == 0u);
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == engine::Code::io), error.full());
      ++reported;
    }
    opened.session.reset();
    for (std::uint32_t d = 0; d < 2; ++d) layers.state(d).settle();
    control->fail_launch(0, 0);
    BOOST_TEST((step_through(kWays[1], kInOrder, kFakes, nullptr, &layers).bytes == good.bytes));
  }
  BOOST_TEST(reported > 0u);
  for (std::uint32_t d = 0; d < 2; ++d) BOOST_TEST(control->freed_in_use(d) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
