// Branches that may run at the same time have scratch memory of their own, where there is room.
#include <boost/test/unit_test.hpp>
#include <map>

#include "engine/graph/model.h"
#include "engine/program/session_spec.h"
#include "tests/support/shape_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(session_lanes)

namespace {

const heddle_kernel kAnyKernel{
    sizeof(heddle_kernel), "any", "test", "any", nullptr, nullptr, nullptr};

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;  // with a budget weights count, too

struct LaneCall {
  test::TemporaryFolder folder;
  Value model = test::chain_model(folder / "chain.safetensors", 16, 512, {});

  SessionPlan plan(std::uint32_t sets, bool captures, std::uint64_t budget) const {
    const CallSpec call = test::shape_call(model, {.tokens = 64, .steps = 4, .sets = sets}, 512);
    SessionSetup setup{call, {ParallelMode::none, {0}, {}, {}, {}, {}}};
    setup.devices = {{"gpu:0", HEDDLE_BF16, false, budget, {}, captures}};
    setup.layout = [](std::uint32_t, const WeightSource& source) {
      return plain_layout(source, HEDDLE_BF16);
    };
    return plan_session(*get_model(*model)->graph, session_spec(std::move(setup)),
                        [](std::uint32_t, const heddle_op_call&) {
                          return ChosenKernel{&kAnyKernel, 0};
                        });
  }
};

// Whether any scratch memory is used by branches of two lanes.
bool share_scratch(const SessionPlan& plan) {
  std::map<std::uint64_t, std::uint32_t> lane_at;  // by offset
  for (const PlannedOp& op : plan.ops)
    for (const Operand& out : op.op.out) {
      const SessionStorage& storage = plan.storages[out.storage];
      if (storage.kind != SessionStorage::Kind::scratch) continue;
      const auto known = lane_at.try_emplace(storage.offset, lane_of(op.branch)).first;
      if (known->second != lane_of(op.branch)) return true;
    }
  return false;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(two_branches_have_lanes_where_the_device_can_run_them, LaneCall) {
  const SessionPlan with = plan(2, true, kPlenty), without = plan(2, false, kPlenty);
  BOOST_TEST(with.arenas[0].has_lanes);
  BOOST_TEST(!share_scratch(with));
  BOOST_TEST(!without.arenas[0].has_lanes);
  BOOST_TEST(share_scratch(without));
  BOOST_TEST(with.arenas[0].lane_bytes ==
             with.arenas[0].scratch_bytes - without.arenas[0].scratch_bytes);
  BOOST_TEST(with.min_bytes(0) == without.min_bytes(0));
  BOOST_TEST(!plan(1, true, kNoLimit).arenas[0].has_lanes);
}

BOOST_FIXTURE_TEST_CASE(lanes_take_no_room_from_weights, LaneCall) {
  const std::uint64_t least = plan(2, false, kPlenty).need_bytes(0);
  const SessionPlan tight = plan(2, true, least),
                    roomy = plan(2, true, plan(2, true, kPlenty).need_bytes(0));
  BOOST_TEST(!tight.arenas[0].has_lanes);
  BOOST_TEST(tight.arenas[0].staging_ring_bytes == 0u);
  BOOST_TEST(roomy.arenas[0].has_lanes);
  BOOST_TEST(roomy.arenas[0].staging_ring_bytes == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
