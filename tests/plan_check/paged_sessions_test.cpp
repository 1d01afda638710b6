// Plans of random calls whose weights find no room: pages come in before they are read, lie where
// nobody reads any more, and the budget is kept; plans broken on purpose do not.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/place/call_steps.h"
#include "engine/place/estimate.h"
#include "engine/program/verify_session.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "tests/plan_check/parallel_modes.h"
#include "tests/plan_check/random_sessions.h"
#include "tests/support/plan_case.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::ParallelMode;
using engine::SessionAction;
using engine::SessionPlan;
using engine::SessionStorage;
using ActionKind = engine::SessionAction::Kind;

BOOST_AUTO_TEST_SUITE(paged_sessions)

namespace {

std::string first_of(const std::vector<std::string>& faults) {
  return faults.empty() ? "" : faults.front();
}

SessionPlan plan_of(const test::SessionQuestion& question) {
  return engine::plan_session(question.graph, question.spec, test::any_kernel);
}

void set_budgets(test::SessionQuestion& question,
                 const std::function<std::uint64_t(std::uint32_t)>& of) {
  for (std::uint32_t p = 0; p < question.spec.device_slots.size(); ++p)
    question.spec.device_slots[p].budget = of(p);
}

// What each device slot holds when everything stays, and the least with which it runs.
struct Bounds {
  std::vector<std::uint64_t> all, least;
};
Bounds bounds_of(test::SessionQuestion question) {
  set_budgets(question, [](std::uint32_t) { return engine::kNoLimit - 1; });
  const SessionPlan plan = plan_of(question);
  Bounds bounds;
  for (std::uint32_t p = 0; p < question.spec.device_slots.size(); ++p) {
    bounds.all.push_back(plan.need_bytes(p));
    bounds.least.push_back(plan.min_bytes(p));
  }
  return bounds;
}

// Twelve products on one device, weights in every phase.
test::SessionQuestion chain(std::uint32_t sets) {
  test::SessionQuestion q;
  q.graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH},
                    {"c", HEDDLE_INPUT_LOOP_INVARIANT},
                    {"t", HEDDLE_INPUT_PRECOMPUTED}};
  const auto add = [&](const std::string& type, std::vector<engine::Source> reads) {
    engine::Node node;
    node.type = test::session_block(type);
    node.id = engine::cat(type, ".", q.graph.nodes.size());
    node.inputs.resize(2);
    std::ranges::copy(reads, node.inputs.begin());
    if (type == "matrix") node.weights = {{{"up", 0, -1}}, {{"down", 0, -1}}};
    q.graph.order.push_back(engine::NodeIndex(q.graph.nodes.size()));
    q.graph.nodes.push_back(std::move(node));
    return engine::Source{engine::NodeIndex(q.graph.nodes.size() - 1), 0};
  };
  const engine::Source c = add("matrix", {{engine::kGraphInputs, 1}});
  const engine::Source t = add("matrix", {add("matrix", {{engine::kGraphInputs, 2}})});
  engine::Source x = add("mix", {{engine::kGraphInputs, 0}, c});
  x = add("mix", {x, t});
  for (int i = 0; i < 12; ++i) x = add("matrix", {x});
  q.graph.outputs = {{"y", x}};
  const auto info = [](std::int64_t items, std::int64_t tokens) {
    return engine::make_info(HEDDLE_F32, std::vector{items, tokens, std::int64_t(256)});
  };
  for (std::uint32_t set = 0; set < sets; ++set)
    q.spec.sets.push_back({{{"c", info(1, 1)}}, {{"x", info(2, 4)}}});
  q.spec.schedule = {{"t", info(3, 1)}};
  q.spec.step_count = 3;
  q.spec.device_slots = {{"fake:0", HEDDLE_F32, 1}};
  q.spec.placement = {ParallelMode::none, {0}, {}, {}, {}};
  q.spec.weight = [](std::uint32_t, engine::NodeIndex, std::uint32_t slot, std::uint32_t) {
    return std::optional(engine::make_info(HEDDLE_F32, slot == 0
                                                           ? std::vector<std::int64_t>{512, 256}
                                                           : std::vector<std::int64_t>{256, 512}));
  };
  const Bounds bounds = bounds_of(q);
  set_budgets(q, [&](std::uint32_t p) { return (bounds.all[p] + bounds.least[p]) / 2; });
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
  const SessionAction action = actions[from];
  actions.erase(actions.begin() + std::ptrdiff_t(from));
  actions.insert(actions.begin() + std::ptrdiff_t(to), action);
}

}  // namespace

BOOST_AUTO_TEST_CASE(plans_of_random_calls_keep_their_budgets_and_compute_the_same) {
  std::mt19937 random(17);
  std::size_t pages = 0, refused = 0;
  for (int i = 0; i < 200; ++i)
    for (const ParallelMode mode : test::all_parallel_modes()) {
      if (test::is_combined(mode) && i % 4 != 0) continue;
      test::SessionQuestion question = test::random_session(random, mode);
      const engine::SessionFindings resident =
          engine::check_session(question.graph, question.spec, plan_of(question));
      const Bounds bounds = bounds_of(question);
      for (const int part : {0, 1, 2, 3}) {
        set_budgets(question, [&](std::uint32_t p) {
          return bounds.least[p] + (bounds.all[p] - bounds.least[p]) * std::uint64_t(part) / 3;
        });
        BOOST_TEST_INFO(question.describe() << ", part " << part);
        const SessionPlan plan = plan_of(question);
        const auto found = engine::check_session(question.graph, question.spec, plan);
        BOOST_TEST_REQUIRE(found.faults.empty(), first_of(found.faults));
        BOOST_TEST_REQUIRE((found.outputs == resident.outputs));
        if (part == 3) BOOST_TEST(plan.pages.empty());
        pages += plan.pages.size();
      }
      for (std::uint32_t p = 0; p < question.spec.device_slots.size(); ++p) {
        set_budgets(question, [&](std::uint32_t other) {
          return bounds.least[other] - (other == p && bounds.least[p] > 0 ? 1 : 0);
        });
        if (bounds.least[p] == 0) continue;
        BOOST_CHECK_EXCEPTION(plan_of(question), engine::Error, [&](const engine::Error& error) {
          ++refused;
          const std::string least = engine::cat("(", bounds.least[p], " bytes)");
          return error.code() == engine::Code::out_of_memory &&
                 error.full().find(least) != std::string::npos &&
                 error.full().find(question.spec.device_slots[p].name) != std::string::npos;
        });
      }
    }
  BOOST_TEST(pages > 2'000u);
  BOOST_TEST(refused > 1'000u);
}

// The branches run block by block, so one copy serves all of them.
BOOST_AUTO_TEST_CASE(a_streamed_weight_is_copied_once_a_step_for_all_sets) {
  const test::SessionQuestion one = chain(1), two = chain(2);
  for (const auto* question : {&one, &two}) {
    const SessionPlan plan = plan_of(*question);
    const auto faults = engine::check_session(question->graph, question->spec, plan).faults;
    BOOST_TEST(faults.empty(), first_of(faults));
    std::uint64_t bytes = 0;
    for (const SessionAction& action : plan.phases[2])
      if (action.kind == ActionKind::page_in) bytes += plan.pages[action.index].bytes;
    BOOST_TEST(bytes > 0u);
    BOOST_TEST(bytes == plan.needs[0].step_page_bytes);
    BOOST_TEST(bytes < 24u * 512 * 1024);
    BOOST_TEST(!plan.first_pages.empty());
    BOOST_TEST(plan.needs[0].once_page_bytes == 6u * 512 * 1024);
  }
}

BOOST_AUTO_TEST_CASE(plans_with_pages_broken_on_purpose_are_rejected) {
  const test::SessionQuestion question = chain(2);
  const SessionPlan right = plan_of(question);
  BOOST_TEST_REQUIRE(right.pages.size() > 6u);
  const auto page_of = [](SessionPlan& p, std::size_t number) -> SessionStorage& {
    return p.storages[std::size_t(p.pages[number].weight)];
  };
  const std::vector<std::pair<const char*, std::function<void(SessionPlan&)>>> broken{
      {"a page is not awaited",
       [](SessionPlan& p) {
         auto& actions = p.phases[2];
         actions.erase(actions.begin() + std::ptrdiff_t(find(p, 2, ActionKind::await_page)));
       }},
      {"a page is awaited behind its reader",
       [](SessionPlan& p) {
         const std::size_t at = find(p, 2, ActionKind::await_page);
         move(p, 2, at, at + 1);
       }},
      {"a page comes in while its room is read",
       [](SessionPlan& p) {
         std::size_t at = find(p, 2, ActionKind::page_in);
         while (p.phases[2][at].for_next_step) ++at;
         move(p, 2, at, at - 1);
       }},
      {"pages come in early all together",
       [](SessionPlan& p) {
         for (std::size_t i = 0; i < p.phases[2].size(); ++i)
           if (p.phases[2][i].kind == ActionKind::page_in && !p.phases[2][i].for_next_step)
             move(p, 2, i, 0);
       }},
      {"the first pages are missing", [](SessionPlan& p) { p.first_pages.clear(); }},
      {"a page of the next step comes in too soon",
       [](SessionPlan& p) {
         for (std::size_t i = 0; i < p.phases[2].size(); ++i)
           if (p.phases[2][i].for_next_step) return move(p, 2, i, 0);
       }},
      {"the last step brings pages of the next one",
       [](SessionPlan& p) {
         for (SessionAction& action : p.phases[2]) action.for_next_step = false;
       }},
      {"all pages lie in one place",
       [&](SessionPlan& p) {
         for (std::size_t i = 0; i < p.pages.size(); ++i) page_of(p, i).offset = 0;
       }},
      {"the ring is too small", [](SessionPlan& p) { p.arenas[0].staging_ring_bytes /= 2; }},
      {"the ring is too large for the budget",
       [](SessionPlan& p) { p.arenas[0].staging_ring_bytes += 64 << 20; }},
      {"a page carries less than its weight", [](SessionPlan& p) { p.pages.front().bytes -= 1; }},
      {"a page is another weight", [](SessionPlan& p) { p.pages[0].weight = p.pages[1].weight; }},
      {"the bytes of a step are told wrongly",
       [](SessionPlan& p) { p.needs[0].step_page_bytes += 1; }},
      {"a page stays a weight",
       [&](SessionPlan& p) { page_of(p, 0).kind = SessionStorage::Kind::weight; }},
  };
  for (const auto& [how, break_it] : broken) {
    SessionPlan plan = right;
    break_it(plan);
    BOOST_TEST(!engine::check_session(question.graph, question.spec, plan).faults.empty(), how);
  }
}

// What may be pinned, the mode, the GiB of each of two devices.
using StreamedCases = std::vector<std::tuple<const char*, const char*, int>>;

// A load knows blocks, a session knows ops and where everything lies.
void check_expectations_of_streaming(const StreamedCases& cases) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
  // From memory that may be pinned, at four times the rate of other memory, or not.
  const char* const costs = R"({"links": {"host -> Card": {"bytes_per_second": 2e10},
      "pinned host -> Card": {"bytes_per_second": 8e10}}})";
  for (const auto& [pinned, mode, memory] : cases)
    BOOST_TEST_CONTEXT(mode << " in " << memory << " GiB, pinned " << pinned) {
      const std::uint64_t most_pinned = engine::parse_bytes(pinned).value();
      const std::string device =
          engine::cat(R"(", "memory": ")", memory, R"(GiB", "flops": 4e14, "bandwidth": 2e12})");
      const std::string text = engine::cat(
          R"({"pinned": ")", pinned, R"(", "costs": )", costs, R"(, "devices": [{"name": "gpu:0)",
          device, R"(, {"name": "gpu:1)", device,
          R"(], "models": {"flux": {"kind": "flux", "hints": {"device": "gpu:0,gpu:1", )",
          R"("parallel": ")", mode, R"("}}}, "nodes": [{"id": "sampler", "outputs": ["1MiB"],)",
          R"( "device": "gpu:0", "calls": [{"model": "flux", "steps": 20, "sets": 2}]}]})");
      const test::TemporaryFolder folder;
      const test::PlanCase question(engine::parse_json(text, "question"), *plugins.catalog,
                                    folder.path());
      const engine::Plan plan = question.plan();
      const engine::PlacedCall& call = plan.assignments[0].calls.at(0);
      BOOST_TEST_REQUIRE(call.streamed);
      const engine::Prices prices(question.topology(), engine::read_costs(costs, "costs"));
      const engine::CallSpec& spec = question.inferred().nodes[0].calls[0];
      const auto load = std::make_shared<const engine::CallLoad>(
          engine::call_load(*call.of, spec, question.topology().devices[0].compute));
      const engine::CallEstimate expected = engine::estimate_streamed(
          {*call.of->graph, {load, load}, plan.assignments[0].device, prices}, call.placement);
      engine::SessionSpec asked = engine::session_spec(
          engine::session_setup(spec, call.placement, plan.assignments[0].device, prices));
      asked.donors.clear();  // nobody counts on them beforehand
      const SessionPlan session = engine::plan_session(
          *call.of->graph, asked,
          [](std::uint32_t, const heddle_op_call&) { return engine::ChosenKernel(); });
      const auto faults = engine::check_session(*call.of->graph, asked, session).faults;
      BOOST_TEST(faults.empty(), first_of(faults));
      std::uint64_t bytes = 0, reported = 0, pinned_bytes = 0;
      double seconds = 0;
      for (std::uint32_t p = 0; p < session.needs.size(); ++p) {
        bytes += session.needs[p].step_page_bytes;
        seconds = std::max(seconds, session.needs[p].step_seconds);
        const std::uint64_t here =
            session.needs[p].step_page_bytes - session.needs[p].unpinned_page_bytes;
        // Devices that stream the same weights do so from the same copy.
        pinned_bytes =
            mode == std::string("cfg") ? std::max(pinned_bytes, here) : pinned_bytes + here;
      }
      std::uint64_t unpinned = 0;
      for (const engine::CallStream& stream : call.report.streams) {
        reported += stream.step_bytes;
        unpinned += stream.unpinned_bytes;
      }
      BOOST_TEST(reported == bytes);
      BOOST_TEST(pinned_bytes <= most_pinned);
      constexpr std::uint64_t kLargest = 135 << 20;
      if (unpinned > 0) BOOST_TEST(pinned_bytes + kLargest >= most_pinned);
      BOOST_TEST(std::abs(double(expected.page_bytes) - double(bytes)) <=
                     0.03 * double(load->weight_bytes),
                 expected.page_bytes << " bytes expected, " << bytes << " copied");
      BOOST_TEST(expected.seconds / 20 == seconds, boost::test_tools::tolerance(0.1));
    }
}

BOOST_AUTO_TEST_CASE(what_placement_expects_of_streaming_is_what_a_session_does) {
  check_expectations_of_streaming({{"3GiB", "cfg", 6}, {"0", "layers", 4}, {"0", "none", 8}});
}

BOOST_AUTO_TEST_CASE(what_placement_expects_of_streaming_is_so_of_other_memory_and_modes,
                     *boost::unit_test::label("long")) {
  check_expectations_of_streaming({{"64GiB", "none", 6},
                                   {"3GiB", "none", 6},
                                   {"3GiB", "layers", 6},
                                   {"0", "none", 4},
                                   {"0", "none", 6},
                                   {"0", "layers", 6},
                                   {"0", "layers", 8},
                                   {"0", "cfg", 4},
                                   {"0", "cfg", 6},
                                   {"0", "cfg", 8}});
}

BOOST_AUTO_TEST_SUITE_END()
