// What holds for the plan of any graph: values are where they are read, moved once, and given back
// after the last reader.
#include "engine/place/plan.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <set>

#include "engine/base/error.h"
#include "engine/explain/plan_dot.h"
#include "engine/explain/plan_text.h"
#include "engine/place/place.h"
#include "tests/support/random_tasks.h"
#include "tests/support/refusal.h"
#include "tests/support/shape_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_nodes.h"

using namespace heddle;
using namespace heddle::engine;

namespace {

NodeTypeRef work_type(std::uint32_t flags) {
  auto node = std::make_shared<test::TestNode>("test.work", flags);
  node->in("a", "TENSOR")
      .in("b", "TENSOR", HEDDLE_PORT_HOST)
      .in("c", "LATENT", HEDDLE_PORT_PASS)
      .out("TENSOR")
      .out("LATENT", "passed");
  return test::type_of(node);
}

struct Question {
  Graph graph;
  Inferred inferred;
  Topology topology;
};

// Devices of which the first works in host memory; every fifth node is on the host, every seventh
// has a hint.
Question draw(std::uint32_t seed) {
  std::mt19937 random(seed);
  Question q;
  q.topology = test::equal_devices(4, 1e9, 1e-4);
  q.topology.devices[0].host_visible = true;
  q.topology.links[4].kind = q.topology.links[4 * 5].kind = LinkFacts::Kind::same;
  const NodeTypeRef device_work = work_type(0), host_work = work_type(HEDDLE_NODE_HOST);
  for (NodeIndex n = 0; n < 40; ++n) {
    Node node{std::to_string(n),
              "",
              n % 5 == 4 ? host_work : device_work,
              false,
              {std::monostate(), std::monostate(), std::monostate()},
              {},
              {},
              {}};
    for (std::uint32_t i = 0; n > 0 && i < 3; ++i)
      if (random() % 3 != 0) node.inputs[i] = Source{NodeIndex(random() % n), i == 2 ? 1u : 0u};
    if (n % 7 == 3) node.hints.device = "gpu:" + std::to_string(random() % 4);
    q.graph.nodes.push_back(std::move(node));
    q.graph.order.push_back(n);
    NodeSpec spec;
    spec.flops = 1e9 * double(random() % 100);
    spec.outputs.resize(2);
    for (ValueSpec& output : spec.outputs)
      if (random() % 4 != 0)
        output.tensors[""] = test::info_of(HEDDLE_U8, {std::int64_t(random() % 10'000'000)});
    q.inferred.nodes.push_back(std::move(spec));
  }
  return q;
}

Plan plan_of(const Question& q) {
  Plan plan = make_plan(q.graph, place({q.graph, q.inferred, q.topology, Costs(), {}}), q.inferred,
                        q.topology);
  add_steps(q.graph, q.inferred, q.topology, plan);
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan)

BOOST_AUTO_TEST_CASE(values_are_moved_once_read_where_they_are_and_released_last) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) BOOST_TEST_CONTEXT("seed " << seed) {
      const Question q = draw(seed);
      const Plan plan = plan_of(q);
      using Placed = std::tuple<NodeIndex, std::uint32_t, std::uint32_t>;  // node, output, place
      std::set<Placed> there, gone;
      std::set<NodeIndex> ran;
      for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        for (const std::uint32_t a : step.after) BOOST_TEST(a < s);
        switch (step.kind) {
          case Step::Kind::transfer:
            BOOST_TEST(ran.contains(step.node));
            BOOST_TEST(!gone.contains({step.node, step.port, step.from}));
            BOOST_TEST((there.insert({step.node, step.port, step.to}).second));
            BOOST_TEST((q.topology.link(step.from, step.to).kind != LinkFacts::Kind::same));
            break;
          case Step::Kind::release:
            BOOST_TEST(gone.insert({step.node, step.port, step.to}).second);
            BOOST_TEST(!step.after.empty());
            break;
          case Step::Kind::run: {
            BOOST_TEST(ran.insert(step.node).second);
            const Node& node = q.graph.nodes[step.node];
            for (std::uint32_t i = 0; i < 3; ++i) {
              const auto* link = std::get_if<Source>(&node.inputs[i]);
              if (link == nullptr) continue;
              BOOST_TEST(ran.contains(link->node));
              if (i == 2) continue;  // looks at the record only
              const std::uint32_t wanted = i == 1 ? kHostSide : step.to;
              const Assignment& maker = plan.assignments[link->node];
              const std::uint32_t home = maker.on_host ? kHostSide : maker.device;
              const bool near =
                  q.topology.link(home, wanted).kind == LinkFacts::Kind::same ||
                  engine::bytes_of(q.inferred.nodes[link->node].outputs[link->port], "TENSOR") == 0;
              BOOST_TEST((near || there.contains({link->node, link->port, wanted})));
              BOOST_TEST(!gone.contains({link->node, link->port, near ? home : wanted}));
            }
          }
        }
      }
      BOOST_TEST(ran.size() == q.graph.nodes.size());
      for (const Placed& value : there) BOOST_TEST(gone.contains(value));
    }
}

BOOST_AUTO_TEST_CASE(the_same_question_has_the_same_plan) {
  const Question q = draw(3);
  const std::string first = plan_text(q.graph, plan_of(q), q.topology);
  for (int i = 0; i < 3; ++i) BOOST_TEST(plan_text(q.graph, plan_of(q), q.topology) == first);
}

BOOST_AUTO_TEST_CASE(titles_and_ids_neither_begin_lines_nor_command_a_terminal) {
  Question q = draw(5);
  const auto lines = [&] {
    return std::ranges::count(plan_text(q.graph, plan_of(q), q.topology), '\n');
  };
  const auto before = lines();
  for (Node& node : q.graph.nodes) {
    node.id += "\n\x1b[2J";
    node.title = "a\n9 b\u202e";
  }
  BOOST_TEST(lines() == before);
  for (const std::string& text :
       {plan_text(q.graph, plan_of(q), q.topology), plan_dot(q.graph, plan_of(q), q.topology)}) {
    BOOST_TEST(text.find("\x1b") == text.npos);
    BOOST_TEST(text.find("\u202e") == text.npos);
  }
}

BOOST_AUTO_TEST_CASE(json_says_the_same_as_the_text) {
  const Question q = draw(4);
  const Plan plan = plan_of(q);
  const Json json = plan_json(q.graph, plan, q.topology);
  BOOST_TEST_REQUIRE(json.find("steps")->size() == plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Json& step = json.find("steps")->at(s);
    BOOST_TEST(step.find("node")->as_string() == q.graph.nodes[plan.steps[s].node].id);
    BOOST_TEST((step.find("bytes") != nullptr) == (plan.steps[s].bytes != kUnknownBytes));
  }
}

BOOST_AUTO_TEST_CASE(computing_nodes_stay_on_devices_of_one_model) {
  Question q = draw(8);
  for (Node& node : q.graph.nodes) node.hints = {};
  q.topology.devices[2].model = "Other card";
  q.topology.devices[3].compute = HEDDLE_BF16;
  std::set<std::pair<std::string, heddle_dtype>> used;
  for (const Assignment& a : plan_of(q).assignments)
    if (!a.on_host)
      used.insert({q.topology.devices[a.device].model, q.topology.devices[a.device].compute});
  BOOST_TEST(used.size() == 1u);
}

BOOST_AUTO_TEST_CASE(runs_side_by_side_spread_over_the_devices) {
  const test::TemporaryFolder folder;
  const Value model = test::chain_model(folder / "chain.safetensors", 8, 2048, {});
  Question q;
  auto node = std::make_shared<test::TestNode>("call");
  node->out("TENSOR");
  q.graph.nodes.push_back({"call", "", test::type_of(node), false, {}, {}, {}, {}});
  q.graph.order = {0};
  q.inferred.nodes.emplace_back();
  q.inferred.nodes[0].outputs.resize(1);
  q.inferred.nodes[0].calls.push_back(
      test::shape_call(model, {.tokens = 4096, .steps = 20, .sets = 2}, 2048));
  q.topology = test::equal_devices(3, 1e11, 1e-6);

  DeviceLoad device_load;
  const auto placed = [&] {
    return place({q.graph, q.inferred, q.topology, Costs(), {}, {}, device_load});
  };
  BOOST_TEST(placed().assignments[0].devices.size() ==
             2u);  // alone, its two sets have a device each
  device_load.among_many = true;
  device_load.busy_seconds.assign(3, 0);
  std::vector<int> runs(3, 0);
  for (int run = 0; run < 6; ++run) {
    const Placement placement = placed();
    BOOST_TEST_REQUIRE(placement.assignments[0].devices.size() == 1u);
    ++runs[placement.assignments[0].device];
    for (std::size_t d = 0; d < 3; ++d) device_load.busy_seconds[d] += placement.device_seconds[d];
  }
  BOOST_TEST(runs == std::vector<int>(3, 2), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plan_tells_what_a_model_refuses) {
  const test::TemporaryFolder folder;
  const Value model = test::chain_model(folder / "chain.safetensors", 2, 64, {});
  Question q;
  auto node = std::make_shared<test::TestNode>("call");
  node->out("TENSOR");
  q.graph.nodes.push_back({"call", "", test::type_of(node), false, {}, {}, {}, {}});
  q.graph.order = {0};
  q.inferred.nodes.emplace_back();
  q.inferred.nodes[0].outputs.resize(1);
  q.inferred.nodes[0].calls.push_back(test::shape_call(model, {.tokens = 8, .steps = 2}, 64));
  q.topology = test::equal_devices(2, 1e11, 1e-6);
  PlaceRequest request{q.graph, q.inferred, q.topology, Costs(), {}};
  BOOST_TEST(place(request).warnings.empty());
  request.load_of = [](const CallSpec&, heddle_dtype) -> std::shared_ptr<const CallLoad> {
    throw Error(Code::invalid_argument, "the context is 32 wide, not 64");
  };
  const std::vector<std::string> warnings = place(request).warnings;
  BOOST_REQUIRE_EQUAL(warnings.size(), 1u);
  BOOST_TEST(warnings.front().find("refuses what is planned: the context is 32 wide, not 64") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_loaders_own_device_input_is_a_hint) {
  auto type = std::make_shared<test::TestNode>("loader", HEDDLE_NODE_DESCRIBES);
  type->in("device", "STRING").out("MODEL");
  Graph graph;
  for (const char* device : {"default", "cpu", ""})
    graph.nodes.push_back(
        {device, "", test::type_of(type), false, {make_value(device)}, {}, {}, {}});
  graph.nodes.push_back(graph.nodes[1]);
  graph.nodes[3].hints.device = "gpu";
  take_device_inputs(graph);
  BOOST_TEST(graph.nodes[0].hints.device == "");
  BOOST_TEST(graph.nodes[1].hints.device == "cpu");
  BOOST_TEST(graph.nodes[2].hints.device == "");
  BOOST_TEST(graph.nodes[3].hints.device == "gpu");
}

BOOST_AUTO_TEST_CASE(seconds_have_three_digits) {
  for (const auto& [seconds, text] : {std::pair(0.0, "0 s"),
                                      {1.0, "1.00 s"},
                                      {0.9996, "1.00 s"},
                                      {0.0123, "12.3 ms"},
                                      {0.5, "500 ms"},
                                      {123.4, "123 s"},
                                      {99.96, "100 s"},
                                      {9.996, "10.0 s"},
                                      {4.2e-6, "4.20 us"},
                                      {4e-9, "0.00 us"}})
    BOOST_TEST(format_seconds(seconds) == text);
}

BOOST_AUTO_TEST_SUITE_END()
