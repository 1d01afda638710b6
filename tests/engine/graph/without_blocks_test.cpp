#include "engine/graph/without_blocks.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/graph/graph_text.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
namespace {

// x and text go through two blocks, each with something of its own beside it, and are joined.
struct Model {
  Graph graph;

  Model() {
    const auto beside = std::make_shared<test::TestNode>("test.beside", HEDDLE_NODE_BLOCK);
    beside->in("time", "TENSOR").out("TENSOR", "mod");
    const auto both = std::make_shared<test::TestNode>("test.both", HEDDLE_NODE_BLOCK);
    both->in("a", "TENSOR").in("mod", "TENSOR").in("b", "TENSOR");
    both->out("TENSOR", "b").out("TENSOR", "a");
    const auto join = std::make_shared<test::TestNode>("test.join", HEDDLE_NODE_BLOCK);
    join->in("a", "TENSOR").in("b", "TENSOR").out("TENSOR", "out");
    graph.inputs = {{"x", HEDDLE_INPUT_PER_STEP},
                    {"text", HEDDLE_INPUT_LOOP_INVARIANT},
                    {"time", HEDDLE_INPUT_LOOP_INVARIANT}};
    add("double.1.mod", test::type_of(beside), {Source{kGraphInputs, 2}});
    add("double.1.block", test::type_of(both),
        {Source{kGraphInputs, 0}, Source{0, 0}, Source{kGraphInputs, 1}});
    add("double.10.mod", test::type_of(beside), {Source{kGraphInputs, 2}});
    add("double.10.block", test::type_of(both), {Source{1, 1}, Source{2, 0}, Source{1, 0}});
    add("join", test::type_of(join), {Source{3, 1}, Source{3, 0}});
    graph.order = {0, 1, 2, 3, 4};
    graph.outputs = {{"out", {4, 0}}, {"inside", {3, 1}}};
  }
  void add(const std::string& id, const NodeTypeRef& type, std::vector<Binding> inputs) {
    Node node;
    node.id = id;
    node.type = type;
    node.inputs = std::move(inputs);
    graph.nodes.push_back(std::move(node));
  }
};

const std::string kInputs =
    "input x per step\ninput text loop-invariant\ninput time loop-invariant\n";

BOOST_FIXTURE_TEST_SUITE(without_blocks_, Model)

BOOST_AUTO_TEST_CASE(readers_of_a_group_read_what_it_would_have_read) {
  BOOST_TEST(graph_text(without_blocks(graph, {"double.1"})) ==
             kInputs +
                 "0 double.10.mod test.beside time=@time\n"
                 "1 double.10.block test.both a=@x mod=double.10.mod.mod b=@text\n"
                 "2 join test.join a=double.10.block.a b=double.10.block.b\n"
                 "output out = join.out\noutput inside = double.10.block.a\n");
  BOOST_TEST(graph_text(without_blocks(graph, {"double.10", "double.1"})) ==
             kInputs +
                 "0 join test.join a=@x b=@text\n"
                 "output out = join.out\noutput inside = @x\n");
}

BOOST_AUTO_TEST_CASE(a_path_that_nothing_has_leaves_nothing_out) {
  BOOST_TEST(graph_text(without_blocks(graph, {"double.2", "double", "single.1", "doubl"})) !=
             graph_text(graph));  // "double" is above all of them
  BOOST_TEST(graph_text(without_blocks(graph, {"double.2", "single.1", "doubl"})) ==
             graph_text(graph));
}

BOOST_AUTO_TEST_CASE(what_nothing_can_take_the_place_of_stays) {
  BOOST_CHECK_EXCEPTION(without_blocks(graph, {"double.1.mod"}), Error, [](const Error& error) {
    return error.full().find("block double.1.mod cannot be left out: others read its 'mod'") !=
           std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
