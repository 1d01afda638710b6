#include "engine/graph/graph_text.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/test_nodes.h"

namespace heddle::engine {
namespace {

BOOST_AUTO_TEST_SUITE(graph_text_)

BOOST_AUTO_TEST_CASE(a_model_shows_its_inputs_weights_and_outputs) {
  const heddle_slot weight{sizeof(heddle_slot), 0, "weight", HEDDLE_USE_LINEAR};
  const heddle_slot bias{sizeof(heddle_slot), HEDDLE_PORT_OPTIONAL, "bias", HEDDLE_USE_VECTOR};
  const heddle_slot* slots[] = {&weight, &bias};
  const auto block = std::make_shared<test::TestNode>("test.linear", HEDDLE_NODE_BLOCK);
  block->in("x", "TENSOR").in("size", "INT", test::int_widget(1, 0, 0)).out("TENSOR", "out");
  block->desc.weight_count = 2;
  block->desc.weights = slots;
  const NodeTypeRef type = test::type_of(block);

  Graph graph;
  graph.inputs = {{"hidden", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH},
                  {"text", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL},
                  {"time", HEDDLE_INPUT_PRECOMPUTED}};
  graph.nodes.push_back({"double.0",
                         "",
                         type,
                         false,
                         {Source{kGraphInputs, 0}, make_value(std::int64_t{4})},
                         {},
                         {{{"q.weight", 0, -1}, {"k.weight", 2, 8}, {"v.weight", 4, -1}}, {}},
                         {}});
  graph.nodes.push_back({"double.1",
                         "",
                         type,
                         false,
                         {Source{0, 0}, {}},
                         {{"more", Source{kGraphInputs, 2}}},
                         {},
                         {}});
  graph.order = {0, 1};
  graph.outputs = {{"noise", {1, 0}}};
  BOOST_TEST(graph_text(graph) ==
             "input hidden per step batch\n"
             "input text loop-invariant optional\n"
             "input time precomputed\n"
             "0 double.0 test.linear x=@hidden size=4 weight<-q.weight+k.weight[2:8]+v.weight[4:]\n"
             "1 double.1 test.linear x=double.0.out +more=@time\n"
             "output noise = double.1.out\n");
}

BOOST_AUTO_TEST_CASE(long_and_odd_literals_stay_on_one_line) {
  const auto node = std::make_shared<test::TestNode>("test.x");
  node->in("a", "STRING").in("b", "*").in("c", "FLOAT").in("d", "*");
  Graph graph;
  graph.nodes.push_back(
      {"1",
       "",
       test::type_of(node),
       false,
       {make_value("first line\nsecond line, which is much too long to be shown"),
        make_value(None{}), make_value(5.0), make_record({{"k", make_value(true)}})},
       {},
       {},
       {}});
  BOOST_TEST(
      graph_text(graph) ==
      "0 1 test.x a=\"first line\\nsecond line, which is much too lon...\" b=null c=5.0 d=<a "
      "record of k>\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
