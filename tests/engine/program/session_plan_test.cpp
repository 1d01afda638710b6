// Phases, slices and memory of a planned session, on blocks made of plain C++ functions: no device,
// no plugin.
#include "engine/program/session_plan.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "engine/base/error.h"
#include "engine/device/status.h"
#include "engine/graph/dag.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(session_plan)

namespace {

const heddle_port kA{sizeof(heddle_port), 0, "a", "TENSOR", "", nullptr};
const heddle_port kB{sizeof(heddle_port), HEDDLE_PORT_OPTIONAL, "b", "TENSOR", "", nullptr};
const heddle_port kShape{sizeof(heddle_port), HEDDLE_PORT_SHAPE, "shape", "TENSOR", "", nullptr};
const heddle_port kTokens{
    sizeof(heddle_port), HEDDLE_PORT_SEQUENCE, "tokens", "TENSOR", "", nullptr};
const heddle_port kOut{sizeof(heddle_port), 0, "out", "TENSOR", "", nullptr};
const heddle_port* const kAddInputs[] = {&kA, &kB};
const heddle_port* const kShapeInputs[] = {&kShape};
const heddle_port* const kTokenInputs[] = {&kTokens, &kB};
const heddle_port* const kOutputs[] = {&kOut};

heddle_tensor* tensor_of(const heddle_value* v) {
  return v == nullptr ? nullptr : get_tensor(*v).get();
}

// out = a + b, or a copy of a.
heddle_status* add(void*, heddle_ctx* ctx) {
  return to_status([&] {
    heddle_tensor* const a = tensor_of(ctx->input(0));
    heddle_tensor* const b = tensor_of(ctx->input(1));
    heddle_tensor_info info = a->info;
    for (std::uint32_t i = 0; b != nullptr && i < info.rank; ++i)
      info.shape[i] = std::max(info.shape[i], b->info.shape[i]);
    std::fill(std::begin(info.stride), std::end(info.stride), 0);
    const Tensor out = ctx->make(info);
    heddle_tensor* const in[] = {a, b};
    heddle_tensor* const to[] = {out.get()};
    ctx->op(op_id(b == nullptr ? HEDDLE_OP_COPY : HEDDLE_OP_ADD),
            {in, std::size_t(b == nullptr ? 1 : 2)}, to, {});
    ctx->set_output(0, make_value(out));
  });
}

heddle_status* fill_like(void*, heddle_ctx* ctx) {
  return to_status([&] {
    const Tensor out = ctx->make(tensor_of(ctx->input(0))->info);
    heddle_tensor* const to[] = {out.get()};
    const heddle_fill_attrs attrs{1};
    ctx->op(op_id(HEDDLE_OP_FILL), {}, to, std::as_bytes(std::span(&attrs, 1)));
    ctx->set_output(0, make_value(out));
  });
}

// out = the rows of all ranks of the group, or a itself.
heddle_status* gather_rows(void*, heddle_ctx* ctx) {
  return to_status([&] {
    heddle_tensor* const a = tensor_of(ctx->input(0));
    const heddle_shard shard = ctx->shard(0);
    heddle_tensor_info info = a->info;
    info.shape[0] = shard.total;
    std::fill(std::begin(info.stride), std::end(info.stride), 0);
    const Tensor out = ctx->make(info);
    heddle_tensor* const in[] = {a};
    heddle_tensor* const to[] = {out.get()};
    const heddle_all_gather_attrs attrs{shard.begin, 0};
    if (ctx->group().count == 1)
      ctx->op(op_id(HEDDLE_OP_COPY), in, to, {});
    else
      ctx->op(op_id(HEDDLE_OP_ALL_GATHER), in, to, std::as_bytes(std::span(&attrs, 1)));
    ctx->set_output(0, make_value(out));
  });
}

// A collective that only the first rank issues.
heddle_status* gather_alone(void*, heddle_ctx* ctx) {
  return ctx->group().rank == 0 ? gather_rows(nullptr, ctx) : add(nullptr, ctx);
}

heddle_status* misbehave(void*, heddle_ctx* ctx) {
  return to_status([&] {
    float number = 0;
    ctx->read(tensor_of(ctx->input(0)), &number, sizeof number);
  });
}

NodeTypeRef type(const char* name, heddle_status* (*execute)(void*, heddle_ctx*),
                 std::uint32_t inputs = 2) {
  static std::vector<std::unique_ptr<heddle_node_desc>> descs;
  descs.push_back(std::make_unique<heddle_node_desc>(
      heddle_node_desc{.size = sizeof(heddle_node_desc),
                       .version = 1,
                       .type = name,
                       .title = name,
                       .category = "test",
                       .doc = "",
                       .flags = HEDDLE_NODE_BLOCK,
                       .input_count = inputs,
                       .output_count = 1,
                       .inputs = inputs == 1 ? kShapeInputs : kAddInputs,
                       .outputs = kOutputs,
                       .execute = execute}));
  return std::make_shared<NodeType>(descs.back().get(), "test", nullptr);
}

struct Builder {
  Graph graph;
  NodeIndex node(const char* id, NodeTypeRef t, std::vector<Binding> inputs) {
    inputs.resize(t->input_count());
    graph.nodes.push_back({id, "", std::move(t), false, std::move(inputs), {}, {}, {}});
    graph.order.push_back(NodeIndex(graph.nodes.size() - 1));
    return graph.order.back();
  }
};

heddle_tensor_info f32(std::initializer_list<std::int64_t> shape) {
  return make_info(HEDDLE_F32, {shape.begin(), shape.size()});
}

const heddle_kernel kKernel{sizeof(heddle_kernel), "any", "test", "any", nullptr, nullptr, nullptr};
ChosenKernel choose(std::uint32_t, const heddle_op_call&) { return {&kKernel, 0}; }

// What a phase launches, in order.
std::vector<PlannedOp> ops(const SessionPlan& plan, std::size_t phase) {
  std::vector<PlannedOp> launched;
  for (const SessionAction& action : plan.phases[phase])
    if (action.kind == SessionAction::Kind::launch) launched.push_back(plan.ops[action.index]);
  return launched;
}

// x: step, c: constant, t: precomputed. y = (x + row(t + c)) + ones_like(x).
Builder example() {
  Builder b;
  b.graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP},
                    {"c", HEDDLE_INPUT_LOOP_INVARIANT},
                    {"t", HEDDLE_INPUT_PRECOMPUTED}};
  const Source x{kGraphInputs, 0}, c{kGraphInputs, 1}, t{kGraphInputs, 2};
  const NodeIndex tc = b.node("tc", type("add", add), {t, c});
  const NodeIndex ones = b.node("ones", type("fill", fill_like, 1), {x});
  const NodeIndex xt = b.node("xt", type("add", add), {x, Source{tc, 0}});
  const NodeIndex y = b.node("y", type("add", add), {Source{xt, 0}, Source{ones, 0}});
  b.graph.outputs = {{"y", {y, 0}}};
  return b;
}

SessionSpec spec(std::uint32_t steps, std::size_t sets) {
  SessionSpec s;
  s.step_count = steps;
  for (std::size_t i = 0; i < sets; ++i)
    s.sets.push_back({{{"c", f32({1, 8})}}, {{"x", f32({2, 8})}}});
  s.schedule = {{"t", f32({steps, 8})}};
  return s;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.full();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_run_as_often_as_what_they_read_changes) {
  const Builder b = example();
  const std::vector<Phase> phases = node_phases(b.graph);
  BOOST_TEST((phases == std::vector<Phase>{Phase::precomputed, Phase::loop_invariant,
                                           Phase::per_step, Phase::per_step}));
}

BOOST_AUTO_TEST_CASE(the_precomputed_phase_sees_all_steps_and_a_step_sees_one_row) {
  const Builder b = example();
  const SessionPlan plan = plan_session(b.graph, spec(5, 1), choose);
  BOOST_TEST(ops(plan, 0).size() == 1u);
  BOOST_TEST_REQUIRE(ops(plan, 1).size() == 1u);
  BOOST_TEST(ops(plan, 2).size() == 2u);
  BOOST_TEST(ops(plan, 1)[0].op.out[0].info.shape[0] == 5);
  BOOST_TEST_REQUIRE(plan.slices.size() == 1u);
  BOOST_TEST(plan.slices[0].from.info.stride[0] == 8);
  BOOST_TEST(plan.slices[0].copy.op.out[0].info.shape[0] == 1);
  BOOST_TEST(ops(plan, 2)[0].op.in[1].storage == plan.slices[0].copy.op.out[0].storage);
}

BOOST_AUTO_TEST_CASE(the_sets_of_a_step_run_block_by_block) {
  const Builder b = example();
  const SessionPlan plan = plan_session(b.graph, spec(3, 2), choose);
  std::vector<std::pair<NodeIndex, std::uint32_t>> order;
  for (const PlannedOp& op : ops(plan, 2)) order.emplace_back(op.node, op.branch);
  BOOST_TEST(
      (order == std::vector<std::pair<NodeIndex, std::uint32_t>>{{2, 0}, {2, 1}, {3, 0}, {3, 1}}));
  BOOST_TEST(plan.outputs.size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_crosses_phases_persists_and_the_rest_shares_an_arena) {
  const Builder b = example();
  const SessionPlan plan = plan_session(b.graph, spec(3, 1), choose);
  const auto kind = [&](const Operand& o) { return plan.storages[std::size_t(o.storage)].kind; };
  BOOST_TEST((kind(ops(plan, 0)[0].op.out[0]) == SessionStorage::Kind::persistent));
  BOOST_TEST((kind(ops(plan, 1)[0].op.out[0]) == SessionStorage::Kind::persistent));
  BOOST_TEST((kind(ops(plan, 2)[0].op.out[0]) == SessionStorage::Kind::scratch));
  BOOST_TEST((kind(ops(plan, 2)[0].op.in[0]) == SessionStorage::Kind::step_input));
  BOOST_TEST((kind(ops(plan, 1)[0].op.in[0]) == SessionStorage::Kind::precomputed));
  // Persistent: x (64 bytes), ones (64), t + c (96), each in 256.
  BOOST_TEST(plan.arenas[0].persistent_bytes == 768u);
}

// Blocks tc and ones on the second place, xt and y on the first, where memory is shared or is not.
SessionSpec on_two_devices(bool shared) {
  SessionSpec s = spec(3, 1);
  s.device_slots = {{"a", HEDDLE_F32, 0}, {"b", HEDDLE_F32, shared ? 0u : 1u}};
  s.placement = {ParallelMode::layers, {0, 1}, {1, 1, 0, 0}, {}, {}};
  return s;
}

BOOST_AUTO_TEST_CASE(an_edge_between_places_becomes_one_transfer) {
  const Builder b = example();
  const SessionPlan plan = plan_session(b.graph, on_two_devices(false), choose);
  BOOST_TEST_REQUIRE(plan.transfers.size() == 2u);
  for (const PlannedTransfer& t : plan.transfers) {
    BOOST_TEST(t.from == 1u);
    BOOST_TEST(t.to == 0u);
    BOOST_TEST(plan.storages[std::size_t(t.source.storage)].device_slot == 1u);
    BOOST_TEST(plan.storages[std::size_t(t.dest.storage)].device_slot == 0u);
  }
  // tc crosses once for all steps, ones as it was made: neither waits for the loop.
  BOOST_TEST(plan.transfers[0].bytes + plan.transfers[1].bytes == 96u + 64u);
  const auto transfers_in = [&](std::size_t phase) {
    return std::ranges::count_if(plan.phases[phase], [](const SessionAction& a) {
      return a.kind == SessionAction::Kind::transfer;
    });
  };
  BOOST_TEST(transfers_in(0) == 1);
  BOOST_TEST(transfers_in(1) == 1);
  BOOST_TEST(transfers_in(2) == 0);
}

BOOST_AUTO_TEST_CASE(where_memory_is_shared_only_the_order_crosses) {
  const Builder b = example();
  const SessionPlan plan = plan_session(b.graph, on_two_devices(true), choose);
  BOOST_TEST_REQUIRE(plan.transfers.size() == 2u);
  for (const PlannedTransfer& t : plan.transfers) {
    BOOST_TEST(t.bytes == 0u);
    BOOST_TEST(t.dest.storage == t.source.storage);
  }
}

BOOST_AUTO_TEST_CASE(a_transfer_starts_behind_its_block_and_is_awaited_before_its_reader) {
  const Builder b = example();
  SessionSpec s = spec(3, 1);
  s.device_slots = {{"a", HEDDLE_F32, 0}, {"b", HEDDLE_F32, 1}};
  s.placement = {ParallelMode::layers, {0, 1}, {0, 0, 1, 0}, {}, {}};  // xt alone is away
  const SessionPlan plan = plan_session(b.graph, s, choose);
  std::string order;
  for (const SessionAction& a : plan.phases[2]) {
    if (a.kind == SessionAction::Kind::block) order += b.graph.nodes[plan.blocks[a.index].node].id;
    if (a.kind == SessionAction::Kind::transfer)
      order += plan.transfers[a.index].value.node == kGraphInputs ? ">x" : ">xt";
    if (a.kind == SessionAction::Kind::await)
      order += plan.transfers[a.index].value.node == kGraphInputs ? "?x" : "?xt";
    order += " ";
  }
  std::erase(order, ' ');
  BOOST_TEST(order == ">x?xxt>xt?xty");
}

BOOST_AUTO_TEST_CASE(items_of_a_batch_are_branches_of_their_own) {
  Builder b = example();
  b.graph.inputs[0].flags |= HEDDLE_INPUT_BATCH;
  SessionSpec s = spec(3, 2);
  for (auto& set : s.sets) set.steps = {{"x", f32({5, 8})}};
  s.device_slots = {{"a", HEDDLE_F32, 0}, {"b", HEDDLE_F32, 1}};
  s.placement = {ParallelMode::data, {0, 1}, {}, {}, {0.5, 0.5}};
  const SessionPlan plan = plan_session(b.graph, s, choose);
  BOOST_TEST_REQUIRE(plan.branches.size() == 4u);
  BOOST_TEST(plan.branches[0].count == 3);
  BOOST_TEST(plan.branches[1].count == 2);
  BOOST_TEST(plan.branches[1].begin == 3);
  BOOST_TEST(plan.branches[1].device_slot == 1u);
  for (const PlannedOp& op : ops(plan, 2))
    BOOST_TEST(op.op.out[0].info.shape[0] == plan.branches[op.branch].count);
  for (const PlannedOp& op : plan.ops)
    BOOST_TEST(op.device_slot == plan.branches[op.branch].device_slot);
}

// One block whose tokens two places divide: 2 rows and 1.
struct Sharded {
  Builder b;
  SessionSpec s;
  explicit Sharded(heddle_status* (*execute)(void*, heddle_ctx*)) {
    static const auto* const inputs = kTokenInputs;
    static std::vector<std::unique_ptr<heddle_node_desc>> descs;
    descs.push_back(std::make_unique<heddle_node_desc>(type("divided", execute)->desc()));
    descs.back()->inputs = inputs;
    b.graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP}};
    const NodeIndex n =
        b.node("tokens", std::make_shared<NodeType>(descs.back().get(), "test", nullptr),
               {Source{kGraphInputs, 0}});
    b.graph.outputs = {{"y", {n, 0}}};
    s.sets.push_back({{}, {{"x", f32({3, 8})}}});
    s.device_slots = {{"a", HEDDLE_F32, 0}, {"b", HEDDLE_F32, 1}};
    s.placement = {ParallelMode::sequence, {0, 1}, {}, {}, {}, {2, 1}};
  }
};

BOOST_AUTO_TEST_CASE(a_gather_becomes_copies_between_the_ranks) {
  const Sharded d(gather_rows);
  const SessionPlan plan = plan_session(d.b.graph, d.s, choose);
  BOOST_TEST(plan.blocks.size() == 2u);
  // One row to the second rank, then the rows of each to the other.
  std::vector<std::uint64_t> bytes;
  for (const PlannedTransfer& t : plan.transfers) bytes.push_back(t.bytes);
  BOOST_TEST(bytes == (std::vector<std::uint64_t>{32, 32, 64}), boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(plan.ops.size() == 4u);
  for (const PlannedOp& op : plan.ops) BOOST_TEST(std::string(op_name(op.op.op)) == HEDDLE_OP_COPY);
  // The second place's rows stand behind the first one's.
  for (const PlannedOp& op : plan.ops)
    BOOST_TEST(op.op.out[0].offset_bytes == (op.op.in[0].info.shape[0] == 1 ? 64u : 0u));
  BOOST_TEST(plan.outputs[0].value.info.shape[0] == 3);
}

BOOST_AUTO_TEST_CASE(tokens_that_not_every_rank_would_get_are_not_divided) {
  Sharded d(gather_rows);
  d.s.sets[0].steps = {{"x", f32({1, 8})}};
  const SessionPlan plan = plan_session(d.b.graph, d.s, choose);
  BOOST_TEST(plan.blocks.size() == 1u);
  BOOST_TEST(plan.transfers.empty());
}

BOOST_AUTO_TEST_CASE(ranks_that_issue_other_collectives_are_refused) {
  const Sharded d(gather_alone);
  BOOST_TEST(refusal([&] {
               plan_session(d.b.graph, d.s, choose);
             }).find("do not issue the same collectives") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_missing_input_and_an_unknown_one_are_named) {
  const Builder b = example();
  SessionSpec missing = spec(3, 1);
  missing.sets[0].constants.clear();
  BOOST_TEST(refusal([&] { plan_session(b.graph, missing, choose); }).find("'c' is missing") !=
             std::string::npos);
  SessionSpec unknown = spec(3, 1);
  unknown.sets[0].constants.emplace("cc", f32({1}));
  BOOST_TEST(refusal([&] {
               plan_session(b.graph, unknown, choose);
             }).find("no loop-invariant input 'cc'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_schedule_of_the_wrong_length_is_refused) {
  const Builder b = example();
  SessionSpec wrong = spec(3, 1);
  wrong.schedule = {{"t", f32({4, 8})}};
  BOOST_TEST(refusal([&] {
               plan_session(b.graph, wrong, choose);
             }).find("first axis has to be the 3 steps") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_block_that_reads_elements_is_refused_by_name) {
  Builder b;
  b.graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP}};
  const NodeIndex n = b.node("curious", type("misbehave", misbehave), {Source{kGraphInputs, 0}});
  b.graph.outputs = {{"y", {n, 0}}};
  SessionSpec s;
  s.sets.push_back({{}, {{"x", f32({1})}}});
  const std::string reason = refusal([&] { plan_session(b.graph, s, choose); });
  BOOST_TEST(reason.find("block curious") != std::string::npos, reason);
  BOOST_TEST(reason.find("read a tensor's elements") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(an_op_with_wrong_shapes_is_refused_while_it_is_recorded) {
  Builder b;
  b.graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP}, {"c", HEDDLE_INPUT_LOOP_INVARIANT}};
  const NodeIndex n =
      b.node("sum", type("add", add), {Source{kGraphInputs, 0}, Source{kGraphInputs, 1}});
  b.graph.outputs = {{"y", {n, 0}}};
  SessionSpec s;
  s.sets.push_back({{{"c", f32({3, 8})}}, {{"x", f32({2, 8})}}});
  const std::string reason = refusal([&] { plan_session(b.graph, s, choose); });
  BOOST_TEST(reason.find("block sum: add/1: axis 0 does not broadcast") != std::string::npos,
             reason);
}

BOOST_AUTO_TEST_SUITE_END()
