// Plans of random calls of models keep the rules, divided in every way that there is; plans broken
// on purpose do not.
#include "engine/program/verify_session.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <set>

#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "tests/plan_check/parallel_modes.h"
#include "tests/plan_check/random_sessions.h"

using namespace heddle;
using engine::ParallelMode;
using engine::SessionPlan;
using engine::SessionStorage;
using engine::Source;
using ActionKind = engine::SessionAction::Kind;

BOOST_AUTO_TEST_SUITE(session_check)

namespace {

std::string first_of(const std::vector<std::string>& faults) {
  return faults.empty() ? "" : faults.front();
}

SessionPlan plan_of(const test::SessionQuestion& question) {
  return engine::plan_session(question.graph, question.spec, test::any_kernel);
}

// The same call on one device.
engine::SessionSpec undivided(engine::SessionSpec spec) {
  spec.placement = {ParallelMode::none, {0}, {}, {}, {}};
  spec.device_slots = {{"fake:0", HEDDLE_F32, 0}};
  spec.home = 0;
  return spec;
}

bool any_share_memory(const engine::SessionSpec& spec) {
  std::set<std::uint32_t> memories;
  for (const engine::SessionSpec::DeviceSlot& slot : spec.device_slots)
    if (!memories.insert(slot.memory).second) return true;
  return false;
}

// All branches on the devices that have the first.
engine::SessionSpec with_one_group(engine::SessionSpec spec) {
  engine::CallPlacement& placement = spec.placement;
  const std::uint32_t ranks = placement.ranks();
  placement.parallel = placement.parallel & engine::kOverRanks;
  placement.devices.resize(ranks);
  spec.device_slots.resize(ranks);
  spec.home = 0;
  return spec;
}

void add(engine::Graph& graph, const char* type, const std::vector<Source>& reads) {
  engine::Node node;
  node.type = test::session_block(type);
  node.id = type;
  node.inputs.resize(2);
  std::ranges::copy(reads, node.inputs.begin());
  graph.order.push_back(engine::NodeIndex(graph.nodes.size()));
  graph.nodes.push_back(std::move(node));
}

// Two sets, blocks back and forth between two devices: there is something to reuse, to keep for
// later blocks, for later phases and for the next step.
test::SessionQuestion back_and_forth() {
  test::SessionQuestion q;
  const Source x{engine::kGraphInputs, 0}, c{engine::kGraphInputs, 1}, t{engine::kGraphInputs, 2};
  q.graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH},
                    {"c", HEDDLE_INPUT_LOOP_INVARIANT},
                    {"t", HEDDLE_INPUT_PRECOMPUTED}};
  add(q.graph, "mix", {t, c});
  add(q.graph, "mix", {x, {0, 0}});
  add(q.graph, "swap", {{1, 0}});
  add(q.graph, "in place", {{2, 0}, {1, 0}});
  add(q.graph, "swap", {{3, 0}});
  add(q.graph, "swap", {{4, 0}});
  add(q.graph, "mix", {{5, 0}, {1, 0}});
  q.graph.outputs = {{"y", {6, 0}}};
  const auto info = [](std::int64_t items, std::int64_t tokens) {
    return engine::make_info(HEDDLE_F32, std::vector{items, tokens, std::int64_t(256)});
  };
  for (int set = 0; set < 2; ++set)
    q.spec.sets.push_back({{{"c", info(1, 1)}}, {{"x", info(2, 4)}}});
  q.spec.schedule = {{"t", info(3, 1)}};
  q.spec.step_count = 3;
  q.spec.device_slots = {{"fake:0", HEDDLE_F32, 1}, {"fake:1", HEDDLE_F32, 2}};
  q.spec.placement = {ParallelMode::layers, {0, 1}, {0, 0, 1, 1, 1, 0, 0}, {}, {}};
  return q;
}

// Tokens of three devices, which gather and turn them.
test::SessionQuestion tokens_of_three() {
  test::SessionQuestion q = back_and_forth();
  q.graph.nodes.clear();
  q.graph.order.clear();
  add(q.graph, "attend", {{engine::kGraphInputs, 0}});
  add(q.graph, "turn", {{0, 0}});
  add(q.graph, "turn the others", {{1, 0}});
  add(q.graph, "in place", {{2, 0}, {0, 0}});
  q.graph.outputs = {{"y", {3, 0}}};
  q.spec.device_slots.push_back({"fake:2", HEDDLE_F32, 3});
  q.spec.placement = {ParallelMode::sequence, {0, 1, 2}, {}, {}, {}, {0.5, 0.25, 0.25}};
  return q;
}

std::size_t find(const SessionPlan& plan, int phase, ActionKind kind, std::size_t number = 0) {
  const auto& actions = plan.phases[std::size_t(phase)];
  for (std::size_t i = 0; i < actions.size(); ++i)
    if (actions[i].kind == kind && number-- == 0) return i;
  throw std::out_of_range("the plan has no such action");
}
void move(SessionPlan& plan, int phase, std::size_t from, std::size_t to) {
  auto& actions = plan.phases[std::size_t(phase)];
  const engine::SessionAction action = actions[from];
  actions.erase(actions.begin() + std::ptrdiff_t(from));
  actions.insert(actions.begin() + std::ptrdiff_t(to), action);
}
void drop(SessionPlan& plan, int phase, std::size_t at) {
  auto& actions = plan.phases[std::size_t(phase)];
  actions.erase(actions.begin() + std::ptrdiff_t(at));
}
std::size_t last(const SessionPlan& plan) { return plan.phases[2].size() - 1; }

// A storage of a kind that the first op of a step or a later one writes.
std::int32_t written(const SessionPlan& plan, SessionStorage::Kind kind, std::size_t number = 0) {
  for (const engine::SessionAction& action : plan.phases[2]) {
    if (action.kind != ActionKind::launch) continue;
    const std::int32_t s = plan.ops[action.index].op.out.front().storage;
    if (plan.storages[std::size_t(s)].kind == kind && number-- == 0) return s;
  }
  throw std::out_of_range("no op writes there");
}
engine::PlannedOp& first_op(SessionPlan& plan) {
  return plan.ops[plan.phases[2][find(plan, 2, ActionKind::launch)].index];
}
// The first transfer of a step that copies something.
engine::PlannedTransfer& first_copy(SessionPlan& plan) {
  for (const engine::SessionAction& action : plan.phases[2])
    if (action.kind == ActionKind::transfer && plan.transfers[action.index].bytes > 0)
      return plan.transfers[action.index];
  throw std::out_of_range("nothing is copied");
}

struct Broken {
  const char* how;
  std::function<void(SessionPlan&)> break_it;
};

constexpr auto kLaunch = ActionKind::launch;
constexpr auto kTransfer = ActionKind::transfer;
constexpr auto kAwait = ActionKind::await;
constexpr auto kScratch = SessionStorage::Kind::scratch;
constexpr auto kPersistent = SessionStorage::Kind::persistent;

// Of any plan that crosses devices in a step.
const std::vector<Broken> kBroken{
    {"an await is missing", [](SessionPlan& p) { drop(p, 2, find(p, 2, kAwait)); }},
    {"a later await is missing", [](SessionPlan& p) { drop(p, 2, find(p, 2, kAwait, 2)); }},
    {"an await comes too late", [](SessionPlan& p) { move(p, 2, find(p, 2, kAwait), last(p)); }},
    {"an await comes before its transfer",
     [](SessionPlan& p) { move(p, 2, find(p, 2, kAwait), 0); }},
    {"an await comes twice",
     [](SessionPlan& p) { p.phases[2].push_back(p.phases[2][find(p, 2, kAwait)]); }},
    {"a transfer is missing", [](SessionPlan& p) { drop(p, 2, find(p, 2, kTransfer)); }},
    {"a transfer starts before its value is made",
     [](SessionPlan& p) { move(p, 2, find(p, 2, kTransfer, 2), 0); }},
    {"a transfer starts twice",
     [](SessionPlan& p) { p.phases[2].push_back(p.phases[2][find(p, 2, kTransfer)]); }},
    {"a value is sent to the same place twice",
     [](SessionPlan& p) {
       engine::PlannedTransfer again = first_copy(p);
       p.storages.push_back(p.storages[std::size_t(again.dest.storage)]);
       again.dest.storage = std::int32_t(p.storages.size() - 1);
       auto& arena = p.arenas[again.to].persistent_bytes;
       p.storages.back().offset = arena;
       arena += again.bytes;
       const auto index = std::uint32_t(p.transfers.size());
       p.transfers.push_back(again);
       p.phases[2].push_back({kTransfer, index});
       p.phases[2].push_back({kAwait, index});
     }},
    {"a transfer carries too little", [](SessionPlan& p) { first_copy(p).bytes /= 2; }},
    {"a transfer is of another part",
     [](SessionPlan& p) { first_copy(p).source.offset_bytes += 4; }},
    {"a transfer leaves from elsewhere",
     [](SessionPlan& p) { std::swap(first_copy(p).from, first_copy(p).to); }},
    {"a transfer repeats in every step what was made before",
     [](SessionPlan& p) {
       for (const int phase : {0, 1})
         for (const engine::SessionAction& action : p.phases[std::size_t(phase)])
           if (action.kind == kTransfer || action.kind == kAwait)
             p.phases[2].insert(p.phases[2].begin(), action);
       p.transfers[p.phases[2].front().index].value = {0, 0};
     }},
    {"an op is missing", [](SessionPlan& p) { drop(p, 2, find(p, 2, kLaunch)); }},
    {"an op comes before what it reads",
     [](SessionPlan& p) { move(p, 2, find(p, 2, kLaunch, 3), find(p, 2, kLaunch)); }},
    {"an op comes twice",
     [](SessionPlan& p) { p.phases[2].push_back(p.phases[2][find(p, 2, kLaunch)]); }},
    {"an op is elsewhere", [](SessionPlan& p) { first_op(p).device_slot ^= 1; }},
    {"an op reads where nothing is",
     [](SessionPlan& p) { first_op(p).op.in.front().storage = 9999; }},
    {"an op reads what another one has made",
     [](SessionPlan& p) { first_op(p).op.in.front() = p.ops.back().op.out.front(); }},
    {"an op reaches out of its storage",
     [](SessionPlan& p) { first_op(p).op.out.front().offset_bytes += 4096; }},
    {"a block runs elsewhere", [](SessionPlan& p) { p.blocks.back().device_slot ^= 1; }},
    {"a block never runs", [](SessionPlan& p) { p.blocks.back().node = 0; }},
    {"two storages lie in one place",
     [](SessionPlan& p) {
       const auto a = std::size_t(written(p, kPersistent));
       for (std::size_t s = 0; s < p.storages.size(); ++s)
         if (s != a && p.storages[s].device_slot == p.storages[a].device_slot &&
             p.storages[s].kind == kPersistent) {
           p.storages[s].offset = p.storages[a].offset;
           return;
         }
     }},
    {"scratch is reused while it is wanted",
     [](SessionPlan& p) {
       for (SessionStorage& s : p.storages)
         if (s.kind == kScratch) s.offset = 0;
     }},
    {"what another device reads lies in scratch",
     [](SessionPlan& p) {
       for (SessionStorage& s : p.storages)
         if (s.kind == kPersistent) s.kind = kScratch;
       for (auto& arena : p.arenas) arena.scratch_bytes += arena.persistent_bytes;
     }},
    {"a storage ends behind its arena",
     [](SessionPlan& p) {
       for (auto& arena : p.arenas) arena.persistent_bytes /= 2;
     }},
    {"a storage is elsewhere",
     [](SessionPlan& p) { p.storages[std::size_t(written(p, kPersistent))].device_slot ^= 1; }},
    {"an output is missing", [](SessionPlan& p) { p.outputs.pop_back(); }},
    {"an output is another value",
     [](SessionPlan& p) { p.outputs.front().value.storage = written(p, kScratch); }},
};

void check_that_it_is_rejected(const test::SessionQuestion& question, const Broken& broken) {
  SessionPlan plan = plan_of(question);
  broken.break_it(plan);
  BOOST_TEST(!engine::check_session(question.graph, question.spec, plan).faults.empty(),
             broken.how);
}

}  // namespace

BOOST_AUTO_TEST_CASE(plans_of_random_calls_keep_the_rules_however_they_are_divided) {
  std::mt19937 random(7);
  std::size_t transfers = 0, divided = 0, compared = 0;
  for (int i = 0; i < 500; ++i)
    for (const ParallelMode mode : test::all_parallel_modes()) {
      if (test::is_combined(mode) && i % 4 != 0) continue;
      const test::SessionQuestion question = test::random_session(random, mode);
      BOOST_TEST_INFO(question.describe());
      const SessionPlan plan = plan_of(question);
      const engine::SessionFindings found =
          engine::check_session(question.graph, question.spec, plan);
      BOOST_TEST_REQUIRE(found.faults.empty(), first_of(found.faults));
      transfers += plan.transfers.size();
      divided += plan.blocks.size() > plan.branches.size() * question.graph.nodes.size() ? 1 : 0;
      // What is computed is what one device computes, or one group that divides tokens or rows.
      // How ranks exchange depends on which of them share memory.
      if (has(mode, ParallelMode::data)) continue;
      if (has(mode, engine::kRanksExchange) && any_share_memory(question.spec)) continue;
      ++compared;
      const engine::SessionSpec alone = has(mode, engine::kRanksExchange)
                                            ? with_one_group(question.spec)
                                            : undivided(question.spec);
      const SessionPlan one = engine::plan_session(question.graph, alone, test::any_kernel);
      BOOST_TEST_INFO(question.describe());
      BOOST_TEST_REQUIRE(
          (found.outputs == engine::check_session(question.graph, alone, one).outputs));
    }
  BOOST_TEST(transfers > 10'000u);
  BOOST_TEST(divided > 200u);
  BOOST_TEST(compared > 2'000u);
}

// The actions of a device slot between the start of a transfer and the wait for it.
std::size_t launches_meanwhile(const SessionPlan& plan, std::uint32_t transfer) {
  const auto& actions = plan.phases[2];
  const auto at = [&](ActionKind kind) {
    return std::ranges::find_if(actions, [&](const engine::SessionAction& a) {
      return a.kind == kind && a.index == transfer;
    });
  };
  return std::size_t(std::count_if(
      at(ActionKind::transfer), at(ActionKind::await), [&](const engine::SessionAction& a) {
        return a.kind == ActionKind::launch &&
               plan.ops[a.index].device_slot == plan.transfers[transfer].to;
      }));
}

BOOST_AUTO_TEST_CASE(what_a_rank_keeps_of_a_result_is_made_while_the_rest_is_on_its_way) {
  test::SessionQuestion question = tokens_of_three();
  for (engine::SessionSpec::DeviceSlot& device_slot : question.spec.device_slots)
    device_slot.peers = 1;
  const SessionPlan plan = plan_of(question);
  const engine::SessionFindings found = engine::check_session(question.graph, question.spec, plan);
  BOOST_TEST(found.faults.empty(), first_of(found.faults));
  std::size_t back = 0;
  for (const engine::PlannedCollective& collective : plan.collectives) {
    if (question.graph.nodes[collective.node].id != "turn the others") continue;
    if (++back % 2 != 0) continue;  // to the heads
    // Its own tokens, and nothing that the engine would have copied besides.
    for (const std::uint32_t transfer : collective.transfers)
      BOOST_TEST(launches_meanwhile(plan, transfer) == 1u);
  }
  BOOST_TEST(back == 2 * plan.branches.size());
}

BOOST_AUTO_TEST_CASE(plans_broken_on_purpose_are_rejected) {
  for (const test::SessionQuestion& question : {back_and_forth(), tokens_of_three()}) {
    const auto faults =
        engine::check_session(question.graph, question.spec, plan_of(question)).faults;
    BOOST_TEST_REQUIRE(faults.empty(), first_of(faults));
  }
  for (const Broken& broken : kBroken) check_that_it_is_rejected(back_and_forth(), broken);
}

BOOST_AUTO_TEST_CASE(the_verifier_throws_what_is_wrong) {
  const test::SessionQuestion question = back_and_forth();
  SessionPlan plan = plan_of(question);
  engine::verify_session(question.graph, question.spec, plan);
  drop(plan, 2, find(plan, 2, kAwait));
  BOOST_CHECK_EXCEPTION(engine::verify_session(question.graph, question.spec, plan), engine::Error,
                        [](const engine::Error& error) {
                          return error.code() == engine::Code::internal &&
                                 error.full().find("the wait for transfer ") != std::string::npos;
                        });
}

BOOST_AUTO_TEST_CASE(a_group_that_misses_any_action_is_rejected) {
  const test::SessionQuestion question = tokens_of_three();
  const SessionPlan right = plan_of(question);
  for (std::size_t i = 0; i < right.phases[2].size(); ++i)
    check_that_it_is_rejected(question,
                              {"an action is missing", [i](SessionPlan& p) { drop(p, 2, i); }});
  SessionPlan alone = right;
  std::erase_if(alone.blocks, [](const SessionPlan::Block& b) { return b.device_slot == 2; });
  BOOST_TEST(!engine::check_session(question.graph, question.spec, alone).faults.empty());
}

BOOST_AUTO_TEST_SUITE_END()
