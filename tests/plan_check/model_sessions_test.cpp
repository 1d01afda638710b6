// Planned sessions of a model that ships: they keep the rules, and the plan tells their weights and
// what crosses between devices.
#include <boost/test/unit_test.hpp>

#include "engine/place/call_steps.h"
#include "engine/program/verify_session.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "tests/plan_check/random_sessions.h"
#include "tests/support/plan_case.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::ParallelMode;
using engine::SessionPlan;
using engine::SessionStorage;

BOOST_AUTO_TEST_SUITE(model_sessions)

namespace {

// The bytes of the weights on each device slot, by what the ops read of them.
std::vector<std::uint64_t> weight_bytes(const SessionPlan& plan, std::size_t device_slots) {
  std::vector<std::uint64_t> of_storage(plan.storages.size(), 0), bytes(device_slots, 0);
  for (const engine::PlannedOp& op : plan.ops)
    for (const engine::Operand& o : op.op.in) {
      if (o.storage < 0) continue;
      const auto end = o.offset_bytes + std::uint64_t(engine::extent(o.info).end) *
                                            engine::dtype_size(engine::DType(o.info.dtype));
      std::uint64_t& known = of_storage[std::size_t(o.storage)];
      known = std::max(known, end);
    }
  for (std::size_t s = 0; s < plan.storages.size(); ++s)
    if (plan.storages[s].kind == SessionStorage::Kind::weight)
      bytes[plan.storages[s].device_slot] += of_storage[s];
  return bytes;
}

// A small FLUX of true width on three devices.
std::string flux_question(std::string_view mode, int side) {
  std::string text = R"({"devices": [)";
  for (int d = 0; d < 3; ++d)
    text += engine::cat(d == 0 ? "" : ", ", R"({"name": "gpu:)", d, R"(", "memory": "64GiB"})");
  return text + engine::cat(R"(], "models": {"flux": {"kind": "flux", "doubles": 2, "singles": 2,)",
                            R"( "hints": {"device": "gpu:0,gpu:1,gpu:2", "parallel": ")", mode,
                            R"("}}}, "nodes": [{"id": "sampler", "outputs": ["1MiB"], "calls": [)",
                            R"({"model": "flux", "steps": 3, "sets": 2, "batch": 3, "width": )",
                            side, R"(, "height": )", side, R"(, "tokens": 32}]}]})");
}

}  // namespace

BOOST_AUTO_TEST_CASE(calls_of_a_true_model_keep_the_rules_and_have_the_weights_that_are_told) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
  for (const char* mode : {"none", "layers", "cfg", "data", "sequence", "tensor"})
    BOOST_TEST_CONTEXT(mode) {
      const test::TemporaryFolder folder;
      const test::PlanCase question(engine::parse_json(flux_question(mode, 256), "question"),
                                    *plugins.catalog, folder.path());
      const engine::Plan plan = question.plan();
      BOOST_TEST_REQUIRE(plan.assignments[0].calls.size() == 1u);
      const engine::PlacedCall& call = plan.assignments[0].calls[0];
      BOOST_TEST(engine::parallel_name(call.placement.parallel) == mode);
      const engine::Prices prices(question.topology(), {});
      const engine::SessionSpec spec = engine::session_spec(
          engine::session_setup(question.inferred().nodes[0].calls[0], call.placement,
                                plan.assignments[0].device, prices));
      const engine::Graph& graph = *call.of->graph;
      const SessionPlan session = engine::plan_session(graph, spec, test::any_kernel);
      const auto faults = engine::check_session(graph, spec, session).faults;
      BOOST_TEST(faults.empty(), (faults.empty() ? "" : faults.front()));
      const auto weights = weight_bytes(session, spec.device_slots.size());
      BOOST_TEST(call.report.parts.empty() == (call.placement.devices.size() == 1));
      for (std::size_t p = 0; p < call.report.parts.size(); ++p)
        BOOST_TEST(weights[p] == call.report.parts[p].weight_bytes);
      // What is reported to cross is what the session's transfers carry, each in one place.
      std::uint64_t once = 0, each_step = 0, reported_once = 0, reported_each_step = 0;
      for (std::size_t phase = 0; phase < 3; ++phase)
        for (const engine::SessionAction& action : session.phases[phase])
          if (action.kind == engine::SessionAction::Kind::transfer)
            (phase == 2 ? each_step : once) += session.transfers[action.index].bytes;
      for (const engine::CallTransfer& t : call.report.transfers)
        (t.once ? reported_once : reported_each_step) += t.bytes;
      for (const engine::CallExchange& e : call.report.exchanges) reported_each_step += e.bytes;
      BOOST_TEST(reported_once == once);
      BOOST_TEST(reported_each_step == each_step);
      BOOST_TEST(call.report.exchanges.empty() ==
                 (call.placement.parallel != ParallelMode::sequence &&
                  call.placement.parallel != ParallelMode::tensor));
      BOOST_TEST(call.report.whole.empty() == (call.placement.parallel != ParallelMode::tensor));
      const engine::Json json = engine::plan_json(question.graph(), plan, question.topology());
      const engine::Json& reported = json.find("steps")->as_array()[0].find("calls")->as_array()[0];
      std::uint64_t in_json = 0;
      for (const char* list : {"transfers", "collectives"})
        if (const engine::Json* found = reported.find(list))
          for (const engine::Json& one : found->as_array())
            in_json += one.find("bytes")->as_uint64();
      BOOST_TEST(in_json == once + each_step);
    }
}

// Enough tokens that attention to those of others and to its own is worth two launches.
BOOST_AUTO_TEST_CASE(a_call_whose_ranks_send_while_they_attend_keeps_the_rules) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
  const test::TemporaryFolder folder;
  const test::PlanCase question(engine::parse_json(flux_question("sequence", 768), "question"),
                                *plugins.catalog, folder.path());
  const engine::Plan plan = question.plan();
  const engine::Prices prices(question.topology(), {});
  engine::SessionSpec spec = engine::session_spec(engine::session_setup(
      question.inferred().nodes[0].calls[0], plan.assignments[0].calls.at(0).placement,
      plan.assignments[0].device, prices));
  const engine::Graph& graph = *plan.assignments[0].calls[0].of->graph;
  for (engine::SessionSpec::DeviceSlot& device_slot : spec.device_slots) device_slot.peers = 1;
  const SessionPlan session = engine::plan_session(graph, spec, test::any_kernel);
  const auto faults = engine::check_session(graph, spec, session).faults;
  BOOST_TEST(faults.empty(), (faults.empty() ? "" : faults.front()));
  // Of three ranks the middle one has others' tokens before and behind its own.
  std::size_t attentions = 0;
  for (const engine::PlannedOp& op : session.ops)
    if (engine::op_name(op.op.op) == std::string_view(HEDDLE_OP_ATTENTION)) ++attentions;
  BOOST_TEST(attentions == 2u * 4 * (2 + 3 + 2));  // sets, blocks
}

BOOST_AUTO_TEST_SUITE_END()
