// What a workflow over two fake devices costs, exactly: the bytes that its plan foretells, and on
// the simulated clock the time of its longest way.
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "engine/place/plan.h"
#include "engine/tensor/shape.h"
#include "tests/engine/run/run_fixture.h"
#include "tests/fake_device/fake_fixture.h"

using namespace heddle;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(workflow_costs)

namespace {

// A copy of 25 floats takes 0.5 + 1 seconds between fakes and nothing to the host; an op takes one.
constexpr const char* kSeconds = R"({"op_seconds": {"fill": 1, "add": 1, "*": 8}, "links": {
    "peer": {"bandwidth": 100, "latency": 0.5}, "host": {"bandwidth": 1e300, "latency": 0}}})";

heddle_tensor_info floats(std::int64_t count) {
  const std::int64_t shape[] = {count};
  return engine::make_info(HEDDLE_F32, shape);
}

// So many ops, one after another; the last one's output is the node's.
Action computes(int ops, std::int64_t count = 25) {
  return [=](heddle_ctx& ctx) {
    const engine::Tensor tensor = ctx.make(floats(count));
    const heddle_fill_attrs attrs{2};
    heddle_tensor* const out[] = {tensor.get()};
    for (int i = 0; i < ops; ++i)
      ctx.op(engine::op_id(HEDDLE_OP_FILL), {}, out, std::as_bytes(std::span(&attrs, 1)));
    ctx.set_output(0, engine::make_value(tensor));
  };
}

void adds(heddle_ctx& ctx) {
  const engine::Tensor sum = ctx.make(floats(25));
  heddle_tensor* const in[] = {engine::get_tensor(*ctx.input(0)).get(),
                               engine::get_tensor(*ctx.input(1)).get()};
  heddle_tensor* const out[] = {sum.get()};
  ctx.op(engine::op_id(HEDDLE_OP_ADD), in, out, {});
  ctx.set_output(0, engine::make_value(sum));
}

void reads(heddle_ctx& ctx) {
  const engine::Tensor& tensor = engine::get_tensor(*ctx.input(0));
  std::vector<std::byte> bytes(engine::dense_bytes(tensor->info));
  if (std::string_view(tensor->storage->place()) != "host")
    throw engine::Error(engine::Code::internal, "it is not the host's");
  std::memcpy(bytes.data(), tensor->data(), bytes.size());
  give_number(ctx, 0);
}

struct TwoFakes : TwoDevices {
  FakeControl control;

  explicit TwoFakes(const std::string& options = kSeconds) {
    plugins = engine::load_plugins({HEDDLE_PLUGINS_DIR "/cpu.so", kFakePlugin});
    const std::vector<std::string> names{"fake:0", "fake:1"};
    environment.devices = engine::open_devices(plugins, {.names = names,
                                                         .compute = {{"fake", "f32"}},
                                                         .reference_kernels = true,
                                                         .options = {{"fake", options}}});
    environment.topology = engine::topology_of(environment.devices);
    control->reset();
  }

  // Runs the flow by a plan; `counts`: floats of each node's output.
  engine::RunResult run_planned(Flow& flow, const std::vector<std::int64_t>& counts) {
    engine::Inferred inferred;
    for (const std::int64_t count : counts) {
      engine::ValueSpec& value = inferred.nodes.emplace_back().outputs.emplace_back();
      if (count > 0)
        value.tensors.emplace("", floats(count));
      else
        value.value = engine::make_value(std::int64_t{1});
    }
    engine::Placement placement;
    placement.assignments = flow.plan.assignments;
    flow.plan = engine::make_plan(flow.graph, std::move(placement), inferred, environment.topology);
    engine::add_steps(flow.graph, inferred, environment.topology, flow.plan);
    return run(flow);
  }
};

constexpr std::uint32_t kSink = HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE;

}  // namespace

BOOST_AUTO_TEST_CASE(a_diamond_takes_its_longer_branch_and_the_transfers_on_it) {
  TwoFakes fakes;
  // near: 1 + ops + 1. far: 1 + way + ops + way + 1.
  for (const auto& [near_ops, far_ops, seconds] :
       {std::tuple(2, 2, 1 + 1.5 + 2 + 1.5 + 1), std::tuple(8, 2, 1.0 + 8 + 1),
        std::tuple(4, 8, 1 + 1.5 + 8 + 1.5 + 1)}) {
    fakes.control->reset();
    Flow flow;
    const auto source = flow.add("source", Place::first, {}, computes(1));
    const auto near = flow.add("near", Place::first, {{{source, 0}}}, computes(near_ops));
    const auto far = flow.add("far", Place::second, {{{source, 0}}}, computes(far_ops));
    flow.add("sum", Place::first, {{{near, 0}}, {{far, 0}}}, adds, kSink);
    fakes.run(flow);
    BOOST_TEST(fakes.control->now(0) == seconds);
    BOOST_TEST(fakes.control->link_busy(0, 1) == 1.5);
    BOOST_TEST(fakes.control->link_busy(1, 0) == 1.5);
  }
}

BOOST_AUTO_TEST_CASE(a_transfer_hides_behind_what_both_devices_compute) {
  TwoFakes fakes;
  Flow flow;
  const auto source = flow.add("source", Place::first, {}, computes(1));
  const auto here = flow.add("here", Place::first, {}, computes(4));
  const auto there = flow.add("there", Place::second, {}, computes(8));
  flow.add("reader", Place::second, {{{source, 0}}, {{there, 0}}}, adds, kSink);
  flow.add("other", Place::first, {{{source, 0}}, {{here, 0}}}, adds, kSink);
  fakes.run(flow);
  BOOST_TEST(fakes.control->now(0) == 1 + 4 + 1);
  BOOST_TEST(fakes.control->now(1) == 8 + 1);  // the value arrives at 2.5
}

BOOST_AUTO_TEST_CASE(the_bytes_that_cross_are_those_of_the_plan) {
  for (const char* peer : {"true", "false"}) {
    TwoFakes fakes(engine::cat(R"({"peer": )", peer, "}"));
    Flow flow;
    const auto a = flow.add("a", Place::first, {}, computes(1, 100));
    const auto b = flow.add("b", Place::second, {{{a, 0}}}, computes(1, 1000));
    const auto c = flow.add("c", Place::second, {{{a, 0}}, {{b, 0}}}, computes(1, 10));
    const auto d = flow.add("d", Place::first, {{{c, 0}}, {{b, 0}}}, computes(1, 3));
    flow.add("host", Place::host, {{{b, 0}}}, reads, kSink);
    flow.add("again", Place::second, {{{b, 0}, HEDDLE_PORT_HOST}, {{d, 0}}}, reads, kSink);
    const engine::RunResult result = fakes.run_planned(flow, {100, 1000, 10, 3, 0, 0});
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> foretold;
    std::uint64_t all = 0;
    for (const engine::Step& step : flow.plan.steps) {
      if (step.kind != engine::Step::Kind::transfer) continue;
      const bool direct = std::string_view(peer) == "true" || step.to == engine::kHostSide;
      if (!direct) foretold[{step.from, HEDDLE_FAKE_HOST}] += step.bytes;
      foretold[{direct ? step.from : HEDDLE_FAKE_HOST, step.to}] += step.bytes;
      all += step.bytes;
    }
    BOOST_TEST(all == 4u * (100 + 10 + 1000 + 1000 + 3));
    BOOST_TEST(result.transferred_bytes == all);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counted;
    for (const std::uint32_t from : {0u, 1u, HEDDLE_FAKE_HOST})
      for (const std::uint32_t to : {0u, 1u, HEDDLE_FAKE_HOST})
        if (from != to) counted[{from, to}] = fakes.control->bytes_copied(from, to);
    for (const auto& [link, bytes] : counted)
      BOOST_TEST(bytes == foretold[link],
                 "peer " << peer << ", " << link.first << " to " << link.second);
  }
}

BOOST_AUTO_TEST_SUITE_END()
