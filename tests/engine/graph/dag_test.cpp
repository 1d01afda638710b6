#include "engine/graph/dag.h"

#include <boost/test/unit_test.hpp>

namespace heddle::engine {
namespace {

using Indices = std::vector<std::uint32_t>;

Dag chain(std::uint32_t count) {
  Dag dag{count, {}};
  for (std::uint32_t i = 0; i + 1 < count; ++i) dag.edges.emplace_back(i, i + 1);
  return dag;
}

BOOST_AUTO_TEST_SUITE(dag)

BOOST_AUTO_TEST_CASE(order_takes_the_smallest_ready_node_first) {
  const Dag dag{6, {{5, 0}, {5, 1}, {4, 1}, {0, 3}, {1, 3}, {1, 3}}};
  BOOST_TEST(topological_order(dag) == (Indices{2, 4, 5, 0, 1, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(order_of_nothing_is_nothing) {
  BOOST_TEST(topological_order({}).empty());
  BOOST_TEST(cycles({}).empty());
  BOOST_TEST(ancestors({}, {}).empty());
}

BOOST_AUTO_TEST_CASE(order_stops_before_a_cycle) {
  const Dag dag{5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}}};
  BOOST_TEST(topological_order(dag) == (Indices{0, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(edges_to_nodes_that_do_not_exist_are_left_out) {
  const Dag dag{2, {{1, 0}, {0, 7}, {9, 1}}};
  BOOST_TEST(topological_order(dag) == (Indices{1, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(cycles_are_found_in_the_order_of_their_edges) {
  const Dag dag{9, {{8, 8}, {1, 5}, {5, 3}, {3, 1}, {0, 1}, {2, 4}, {4, 2}, {6, 7}}};
  const std::vector<Indices> found = cycles(dag);
  BOOST_REQUIRE_EQUAL(found.size(), 3u);
  BOOST_TEST(found[0] == (Indices{1, 5, 3}), boost::test_tools::per_element());
  BOOST_TEST(found[1] == (Indices{2, 4}), boost::test_tools::per_element());
  BOOST_TEST(found[2] == (Indices{8}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_entangled_cycles_the_shortest_through_the_smallest_node_is_shown) {
  const Dag dag{4, {{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 0}, {1, 0}}};
  const std::vector<Indices> found = cycles(dag);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_TEST(found[0] == (Indices{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_graph_without_cycles_has_none) {
  BOOST_TEST(cycles({4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}}).empty());
}

BOOST_AUTO_TEST_CASE(ancestors_are_what_the_roots_need_and_the_roots) {
  const Dag dag{7, {{0, 2}, {1, 2}, {2, 3}, {2, 4}, {5, 6}, {6, 5}}};
  BOOST_TEST(
      ancestors(dag, {3}) == (std::vector<bool>{true, true, true, true, false, false, false}),
      boost::test_tools::per_element());
  BOOST_TEST(ancestors(dag, {5, 0, 0}) ==
                 (std::vector<bool>{true, false, false, false, false, true, true}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_chain_of_300000_nodes_needs_no_deep_stack) {
  Dag dag = chain(300'000);
  BOOST_TEST(topological_order(dag).size() == 300'000u);
  BOOST_TEST(cycles(dag).empty());
  const std::vector<bool> reached = ancestors(dag, {299'999});
  BOOST_TEST(reached.front());
  dag.edges.emplace_back(299'999, 0);
  BOOST_TEST(topological_order(dag).empty());
  const std::vector<Indices> found = cycles(dag);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_TEST(found[0].size() == 300'000u);
  BOOST_TEST(found[0].back() == 299'999u);
}

BOOST_AUTO_TEST_CASE(a_drawing_is_written_for_graphviz_with_its_texts_escaped) {
  const Drawing drawing{{{"a \"b\"\nc\\d", "#112233"}, {"two", "#112233:#445566"}},
                        {{0, 1, "64 B", true}, {0, 1, "X", false}},
                        {{"gpu:0 <A&B>", "#112233"}}};
  BOOST_TEST(write_dot(drawing) == R"dot(digraph G {
graph [fontname="sans-serif", fontsize=11, labelloc=b, label=<<table border="0" cellspacing="4"><tr><td border="1" bgcolor="#112233" width="24"></td><td align="left">gpu:0 &lt;A&amp;B&gt;</td></tr></table>>];
node [shape=box, fontname="sans-serif", fontsize=11];
edge [fontname="sans-serif", fontsize=9];
0 [label="a \"b\"\nc\\d", style="filled,rounded", fillcolor="#112233"];
1 [label="two", style="striped", fillcolor="#112233:#445566"];
0->1  [label="64 B", style=dashed, penwidth=1.5];
0->1  [label="X"];
}
)dot");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
