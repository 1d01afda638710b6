// Room that a plain node has told it needs of its device: it is made, and claimed, before the node
// begins.
#include <boost/test/unit_test.hpp>

#include "engine/memory/host_tensor.h"
#include "engine/tensor/shape.h"
#include "tests/engine/run/run_fixture.h"
#include "tests/fake_device/fake_fixture.h"

namespace heddle::test {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A fake device of 16 MiB.
struct ClaimedRoomFixture {
  FakeControl control;
  engine::LoadedPlugins plugins = engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", kFakePlugin});
  engine::Environment environment{64 * kMiB};
  engine::Observer quiet;

  ClaimedRoomFixture() {
    environment.host = engine::plugin_host();
    environment.catalog = plugins.catalog;
    engine::DeviceSelection selection;
    selection.names = {"fake:0", "fake:1"};
    selection.options["fake"] = R"({"memory": 16777216})";
    selection.reference_kernels = true;
    environment.devices = engine::open_devices(plugins, selection);
    environment.topology = engine::topology_of(environment.devices);
    engine::install_eviction(environment);
  }
  engine::Ledger& ledger() { return environment.devices[0].state->ledger(); }
  static heddle_tensor_info floats(std::uint64_t bytes) {
    return engine::make_info(HEDDLE_F32, std::array<std::int64_t, 1>{std::int64_t(bytes / 4)});
  }
  // A value of so many bytes that only the cache holds.
  void keep(std::uint64_t bytes) {
    engine::Hasher key;
    key.add("kept");
    environment.cache.add(key.finish(),
                          std::vector<engine::Value>{engine::make_value(
                              environment.devices[0].state->make(floats(bytes)))},
                          1.0);
  }
  void run(Flow& flow) {
    engine::RunControl control_of_run;
    engine::execute(flow.request(), environment, quiet, control_of_run);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(claimed_room, ClaimedRoomFixture)

BOOST_AUTO_TEST_CASE(room_is_made_and_claimed_before_a_plain_node_begins) {
  keep(10 * kMiB);
  BOOST_TEST(ledger().report().taken >= 10 * kMiB);
  Flow flow;
  std::uint64_t claimed = 0, taken = 0, after = 0;
  flow.add(
      "scale", Place::first, {},
      [&](heddle_ctx& ctx) {
        const engine::LedgerReport before = ledger().report();
        claimed = before.reserved;
        taken = before.taken;
        const engine::Tensor scratch = ctx.make(floats(6 * kMiB));
        after = ledger().report().reserved;
        give_number(ctx, 1);
      },
      HEDDLE_NODE_IMPURE | HEDDLE_NODE_SINK);
  flow.plan.device_bytes = {12 * kMiB};
  run(flow);
  BOOST_TEST(claimed == 12 * kMiB);
  BOOST_TEST(taken <= 4 * kMiB);  // what only the cache held has gone
  BOOST_TEST(after == 6 * kMiB);  // of the claim
  BOOST_TEST(ledger().report().reserved == 0u);
}

BOOST_AUTO_TEST_CASE(a_node_that_told_more_than_there_ever_is_runs_all_the_same) {
  Flow flow;
  bool ran = false;
  flow.add(
      "scale", Place::first, {},
      [&](heddle_ctx& ctx) {
        ran = true;
        BOOST_TEST(ledger().report().reserved == 0u);
        give_number(ctx, 1);
      },
      HEDDLE_NODE_IMPURE | HEDDLE_NODE_SINK);
  flow.plan.device_bytes = {64 * kMiB};
  run(flow);
  BOOST_TEST(ran);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
