// What a session is planned from: the same for plans that are printed and for sessions at work.
#include "engine/program/session_spec.h"

#include <boost/test/unit_test.hpp>

#include "engine/graph/model.h"
#include "engine/program/weight_slot.h"
#include "engine/program/workload.h"
#include "tests/support/shape_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using namespace heddle::engine;

namespace {

constexpr std::int64_t kSide = 512;
constexpr std::uint64_t kItem = 2;  // bytes of f16 and bf16

struct DividedCall {
  test::TemporaryFolder folder;
  CallSpec call;

  // A layer whose weight is divided along an axis.
  explicit DividedCall(std::int32_t axis) {
    const Value plain = test::chain_model(folder / "chain.safetensors", 1, kSide, {});
    auto model = std::make_shared<Model>(*get_model(*plain));
    Graph graph = *model->graph;
    graph.nodes[0].shards = {{axis, {{kSide, 64}}}};
    model->graph = std::make_shared<const Graph>(std::move(graph));
    call = test::shape_call(make_value(std::shared_ptr<const Model>(std::move(model))),
                            {.tokens = 64, .steps = 2, .sets = 1}, kSide);
  }

  SessionSetup setup() const {
    SessionSetup setup{call, {ParallelMode::tensor, {0, 1}, {}, {}, {}, {0.25, 0.75}}};
    setup.devices = {{"gpu:0", HEDDLE_BF16, false, kNoLimit, {}},
                     {"gpu:1", HEDDLE_BF16, false, kNoLimit, {}}};
    setup.layout = [](std::uint32_t, const WeightSource& source) {
      return plain_layout(source, HEDDLE_BF16);
    };
    return setup;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(spec_of_a_session)

BOOST_AUTO_TEST_CASE(a_weight_is_what_the_load_of_the_call_counts) {
  const DividedCall divided(0);
  const SessionSpec spec = session_spec(divided.setup());
  const Model& model = *get_model(*divided.call.model);
  const auto here = spec.weight(0, 0, 0, kWholeWeight);
  const auto counted = weight_info(model, model.graph->nodes[0], 0, HEDDLE_BF16);
  BOOST_TEST_REQUIRE((here && counted));
  BOOST_TEST(here->dtype == counted->dtype);
  BOOST_TEST(same_shape(*here, *counted));
  BOOST_TEST(spec.weight_bytes(0, 0, 0, kWholeWeight) == kItem * kSide * kSide);
  BOOST_TEST(spec.file_bytes(0, 0, kWholeWeight) == file_bytes(model, model.graph->nodes[0], 0));
}

// A part of the rows lies in the file as it is, so it can be pinned; columns are put together.
BOOST_AUTO_TEST_CASE(each_of_a_group_has_its_part_of_the_file) {
  const DividedCall by_rows(0), by_columns(1);
  const SessionSpec rows = session_spec(by_rows.setup()),
                    columns = session_spec(by_columns.setup());
  BOOST_TEST(rows.weight(0, 0, 0, 0)->shape[0] == kSide / 4);
  BOOST_TEST(rows.weight(1, 0, 0, 1)->shape[0] == kSide * 3 / 4);
  BOOST_TEST(rows.file_bytes(0, 0, 1) == kItem * kSide * kSide * 3 / 4);
  BOOST_TEST(columns.weight(1, 0, 0, 1)->shape[1] == kSide * 3 / 4);
  BOOST_TEST(columns.file_bytes(0, 0, 1) == 0u);
}

BOOST_AUTO_TEST_CASE(devices_are_peers_when_every_two_of_a_group_are) {
  const DividedCall divided(0);
  SessionSetup setup = divided.setup();
  setup.are_peers = [](std::uint32_t a, std::uint32_t b) { return a < b; };
  BOOST_TEST(session_spec(setup).device_slots[0].peers == 0u);
  setup.are_peers = [](std::uint32_t, std::uint32_t) { return true; };
  BOOST_TEST(session_spec(setup).device_slots[0].peers == 1u);
  setup.placement.parallel = ParallelMode::data;  // they have nothing to exchange
  BOOST_TEST(session_spec(setup).device_slots[0].peers == 0u);
}

BOOST_AUTO_TEST_CASE(devices_that_work_in_host_memory_share_it) {
  const DividedCall divided(0);
  SessionSetup setup = divided.setup();
  const SessionSpec apart = session_spec(setup);
  BOOST_TEST(apart.device_slots[0].memory != apart.device_slots[1].memory);
  for (SessionDevice& device : setup.devices) device.host_visible = true;
  const SessionSpec shared = session_spec(setup);
  BOOST_TEST(shared.device_slots[0].memory == shared.device_slots[1].memory);
}

BOOST_AUTO_TEST_SUITE_END()
