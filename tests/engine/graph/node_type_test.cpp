#include "engine/graph/node_type.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "tests/support/refusal.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(node_type)

namespace {

using test::TestNode;

std::string refusal(const heddle_node_desc* desc) {
  const Error error = test::refusal_of([&] { NodeType(desc, "org.example.odd", nullptr); });
  BOOST_TEST((error.code() == Code::invalid_argument));
  return error.what();
}

std::string refusal(TestNode& node) { return refusal(&node.desc); }

BOOST_AUTO_TEST_CASE(ports_are_found_by_name) {
  const Catalog catalog = test::test_catalog();
  const NodeTypeRef type = catalog.find("KSampler");
  BOOST_REQUIRE(type != nullptr);
  BOOST_TEST(type->name() == "KSampler");
  BOOST_TEST(type->plugin() == "org.heddle.test");
  BOOST_TEST(type->input_count() == 10u);
  BOOST_TEST(type->find_input("latent_image").value() == 8u);
  BOOST_TEST(type->find_output("LATENT").value() == 0u);
  BOOST_TEST(!type->find_input("LATENT").has_value());
  BOOST_TEST(!type->find_output("model").has_value());
  BOOST_TEST(!type->find_slot("weight").has_value());
  BOOST_TEST(type->input(0).type == std::string("MODEL"));
  BOOST_TEST(!type->has(HEDDLE_NODE_SINK));
  BOOST_TEST(catalog.find("SaveImage")->has(HEDDLE_NODE_SINK));
}

BOOST_AUTO_TEST_CASE(slots_are_found_by_name) {
  TestNode node("test.linear", HEDDLE_NODE_BLOCK);
  const heddle_slot weight{sizeof(heddle_slot), 0, "weight", HEDDLE_USE_LINEAR};
  const heddle_slot* slots[] = {&weight};
  node.desc.weight_count = 1;
  node.desc.weights = slots;
  const NodeType type(&node.desc, "p", nullptr);
  BOOST_TEST(type.slot_count() == 1u);
  BOOST_TEST(type.find_slot("weight").value() == 0u);
  BOOST_TEST(type.slot(0).use == HEDDLE_USE_LINEAR);
}

BOOST_AUTO_TEST_CASE(the_owner_lives_as_long_as_the_type) {
  auto owner = std::make_shared<TestNode>("test.owned");
  const std::weak_ptr<TestNode> watch = owner;
  {
    const NodeTypeRef type = test::type_of(std::move(owner));
    BOOST_TEST(!watch.expired());
  }
  BOOST_TEST(watch.expired());
}

BOOST_AUTO_TEST_CASE(a_desc_of_a_later_revision_is_read_as_far_as_it_is_known) {
  struct Later {
    heddle_node_desc desc;
    void* added;
  } later{TestNode("test.later").desc, nullptr};
  later.desc.size = sizeof later;
  const NodeType type(&later.desc, "p", nullptr);
  BOOST_TEST(type.name() == "test.later");
}

BOOST_AUTO_TEST_CASE(a_desc_smaller_than_the_first_revision_is_refused_and_not_read) {
  const std::uint32_t size_only = 16;
  heddle_node_desc desc;
  std::memset(&desc, 0xFF, sizeof desc);  // pointers that must not be followed
  desc.size = size_only;
  BOOST_TEST(refusal(&desc) ==
             "plugin 'org.example.odd': the node type's desc has 16 bytes, the first revision has "
             "128. Build the plugin again "
             "with this version's SDK.");
  BOOST_TEST(refusal(static_cast<const heddle_node_desc*>(nullptr)) ==
             "plugin 'org.example.odd' lists a node type that is NULL");
}

BOOST_AUTO_TEST_CASE(a_desc_without_type_or_execute_is_refused) {
  const std::string end = ". Build the plugin again with this version's SDK.";
  TestNode no_type(nullptr), empty_type(""), no_execute("test.x");
  no_execute.desc.execute = nullptr;
  BOOST_TEST(refusal(no_type) == "plugin 'org.example.odd': a node type has no name" + end);
  BOOST_TEST(refusal(empty_type) ==
             "plugin 'org.example.odd', node type '': a node type has no name" + end);
  BOOST_TEST(refusal(no_execute) ==
             "plugin 'org.example.odd', node type 'test.x': it has no execute function" + end);
}

BOOST_AUTO_TEST_CASE(faulty_ports_are_refused_with_the_plugin_and_the_type) {
  const std::string where = "plugin 'org.example.odd', node type 'test.x': ";
  const std::string end = ". Build the plugin again with this version's SDK.";
  TestNode repeated("test.x"), unnamed("test.x"), untyped("test.x"), small("test.x"),
      null_port("test.x"), no_list("test.x"), outputs("test.x", HEDDLE_NODE_BLOCK);
  repeated.in("a", "INT").in("a", "FLOAT");
  unnamed.in(nullptr, "INT");
  untyped.in("a", nullptr);
  small.in("a", "INT").last_port().size = 8;
  const heddle_port* ports[] = {nullptr};
  null_port.desc.inputs = ports;
  null_port.desc.input_count = 1;
  no_list.desc.output_count = 2;
  outputs.out("IMAGE").out("IMAGE");
  BOOST_TEST(refusal(repeated) == where + "the name 'a' stands for more than one input" + end);
  BOOST_TEST(refusal(unnamed) == where + "input 0 has no name" + end);
  BOOST_TEST(refusal(untyped) == where + "input 'a' has no type" + end);
  BOOST_TEST(refusal(small) ==
             where + "the input's desc has 8 bytes, the first revision has 40" + end);
  BOOST_TEST(refusal(null_port) == where + "input 0 is NULL" + end);
  BOOST_TEST(refusal(no_list) == where + "it counts 2 of output but has no list" + end);
  BOOST_TEST(refusal(outputs) == where + "the name 'IMAGE' stands for more than one output" + end);
}

BOOST_AUTO_TEST_CASE(outputs_of_workflow_nodes_may_share_a_name_which_means_the_first) {
  TestNode outputs("test.x");
  outputs.out("INT").out("BOOLEAN").out("BOOLEAN");
  BOOST_TEST(*engine::NodeType(&outputs.desc, "p", nullptr).find_output("BOOLEAN") == 1u);
}

BOOST_AUTO_TEST_CASE(blocks_of_a_model_have_no_lists) {
  TestNode in("test.x", HEDDLE_NODE_BLOCK), out("test.x", HEDDLE_NODE_BLOCK);
  in.in("a", "TENSOR", HEDDLE_PORT_LIST);
  out.out("TENSOR", "made", HEDDLE_PORT_LIST);
  for (const auto& [node, port] : {std::pair(&in, "input 'a'"), {&out, "output 'made'"}}) {
    const heddle_node_desc* const desc = &node->desc;
    const Error error = test::refusal_of([&] { NodeType(desc, "org.example.odd", nullptr); });
    BOOST_TEST(error.what() == cat("plugin 'org.example.odd', node type 'test.x': ", port,
                                   " is a list (HEDDLE_PORT_LIST), which blocks of a model cannot "
                                   "have. Build the plugin again with this version's SDK."));
  }
}

BOOST_AUTO_TEST_CASE(a_type_knows_whether_lists_go_in_or_out) {
  TestNode in("test.x"), out("test.x");
  in.in("a", "INT", HEDDLE_PORT_LIST);
  out.in("a", "INT").out("IMAGE", "pictures", HEDDLE_PORT_LIST);
  const NodeType takes(&in.desc, "org.example", nullptr), makes(&out.desc, "org.example", nullptr);
  BOOST_TEST((takes.takes_lists() && !takes.makes_lists()));
  BOOST_TEST((!makes.takes_lists() && makes.makes_lists()));
}

BOOST_AUTO_TEST_CASE(faulty_widgets_are_refused) {
  const std::string where =
      "plugin 'org.example.odd', node type 'test.x': the widget of input 'a' ";
  const std::string end = ". Build the plugin again with this version's SDK.";
  TestNode unknown("test.x"), broken("test.x"), list("test.x");
  unknown.in("a", "INT", test::make_widget(99));
  broken.in("a", "STRING", test::text_widget("", "{\"multiline\": tru}"));
  list.in("a", "STRING", test::text_widget("", "[1]"));
  BOOST_TEST(refusal(unknown) == where + "has the unknown kind 99" + end);
  BOOST_TEST(refusal(broken).starts_with(where + "has faulty JSON in extra:1:"));
  BOOST_TEST(refusal(list) == where + "needs a JSON object as its extra" + end);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
