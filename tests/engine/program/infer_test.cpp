#include "engine/program/infer.h"

#include <boost/test/unit_test.hpp>

#include "engine/plugin/host.h"
#include "tests/support/refusal.h"
#include "tests/support/test_nodes.h"

using heddle::engine::get_int;
using heddle::engine::get_str;
using heddle::engine::make_record;
using heddle::engine::make_value;
using heddle::engine::part_of;
using heddle::engine::Value;
using heddle::engine::ValueSpec;

namespace {

Value entry(std::int64_t number) { return make_record({{"number", make_value(number)}}); }

Value nested() {
  return make_record({{"name", make_value("a")},
                      {"list", make_value(heddle::engine::List{{entry(1), entry(2)}})}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(infer)

BOOST_AUTO_TEST_CASE(a_part_of_a_value_is_found_by_keys_and_indices) {
  const Value value = nested();
  BOOST_TEST(part_of(value, "").get() == value.get());
  BOOST_TEST(get_str(*part_of(value, "name")) == "a");
  BOOST_TEST(get_int(*part_of(value, "list.1.number")) == 2);
}

BOOST_AUTO_TEST_CASE(a_part_that_is_not_there_is_empty) {
  for (const char* path :
       {"nobody", "name.0", "list.2", "list.-1", "list.1x", "list..number", "list.0.number.0"})
    BOOST_TEST(!part_of(nested(), path), path);
  BOOST_TEST(!part_of(Value(), "name"));
}

BOOST_AUTO_TEST_CASE(a_part_is_found_in_a_known_part_of_a_value) {
  ValueSpec spec;
  spec.parts["left"] = nested();
  BOOST_TEST(get_int(*part_of(spec, "left.list.0.number")) == 1);
  BOOST_TEST(part_of(spec, "left").get() == spec.parts["left"].get());
  // A longer name is another part.
  BOOST_TEST(!part_of(spec, "lefty"));
  BOOST_TEST(!part_of(spec, ""));
}

namespace {

using heddle::engine::Graph;

Value whole(std::int64_t number) { return make_value(number); }

using heddle::engine::infer;

// "from", whose value is known, and "to", which takes it and tells it on as known.
Graph pair_of(const heddle_widget& widget, const char* type, std::uint32_t flags) {
  auto from = std::make_shared<heddle::test::TestNode>("test.from");
  from->out("*", "out");
  auto to = std::make_shared<heddle::test::TestNode>("test.to");
  to->in("in", type, widget, flags).out("*", "out");
  to->desc.infer = [](const heddle_host*, heddle_infer* question) -> heddle_status* {
    const heddle_infer_service& service = *heddle::engine::infer_service();
    const heddle_value* value = service.value(question, 0);
    return value == nullptr ? nullptr : service.known(question, 0, "", value);
  };
  Graph graph;
  graph.nodes.resize(2);
  graph.nodes[0].id = "from";
  graph.nodes[0].type = heddle::test::type_of(std::move(from));
  graph.nodes[1].id = "to";
  graph.nodes[1].type = heddle::test::type_of(std::move(to));
  graph.nodes[1].inputs.emplace_back(heddle::engine::Source{0, 0});
  graph.order = {0, 1};
  return graph;
}

// What "to" was told before the run.
Value seen(const Graph& graph, const Value& value,
           const heddle::engine::Catalog* catalog = nullptr) {
  return part_of(
      infer(graph, heddle::engine::plugin_host(), {{{0, 0}, value}}, catalog).nodes[1].outputs[0],
      "");
}

const heddle_widget kSteps = heddle::test::int_widget(20, 1, 10000);

}  // namespace

BOOST_AUTO_TEST_CASE(a_known_value_out_of_range_is_refused_before_the_run) {
  const Graph graph = pair_of(kSteps, "INT", 0);
  BOOST_TEST(get_int(*seen(graph, whole(10000))) == 10000);
  const auto error = heddle::test::refusal_of([&] { seen(graph, whole(10001)); });
  BOOST_TEST((error.code() == heddle::engine::Code::invalid_argument));
  BOOST_TEST(error.full() ==
             "node 'to' (test.to): input 'in': 10001 is above the greatest value "
             "10000. Give a number from 1 to 10000.");
}

BOOST_AUTO_TEST_CASE(a_known_name_that_is_no_choice_is_refused_before_the_run) {
  const Graph graph =
      pair_of(heddle::test::source_widget(HEDDLE_WIDGET_CHOICE, "test.none/0"), "STRING", 0);
  const heddle::engine::Catalog catalog;
  BOOST_TEST(get_str(*seen(graph, make_value("x"))) == "x");  // nobody knows the choices
  BOOST_CHECK_THROW(seen(graph, make_value("x"), &catalog), heddle::engine::RefusedValue);
}

BOOST_AUTO_TEST_CASE(a_lazy_value_out_of_range_counts_as_unknown) {
  const Graph graph = pair_of(kSteps, "INT", HEDDLE_PORT_LAZY);
  BOOST_TEST(get_int(*seen(graph, whole(1))) == 1);
  BOOST_TEST(!seen(graph, whole(0)));
}

BOOST_AUTO_TEST_CASE(undeclared_inputs_are_parts_of_a_declared_one_that_has_no_value) {
  Graph graph = pair_of(kSteps, "*", HEDDLE_PORT_OPTIONAL);
  heddle::engine::Node& to = graph.nodes[1];
  to.inputs[0] = std::monostate();
  to.extra = {{"in.b", heddle::engine::Source{0, 0}},
              {"inn.c", heddle::engine::Source{0, 0}},
              {"in.a", make_value("here")}};
  auto type = std::make_shared<heddle::test::TestNode>("test.to");
  type->in("in", "*", kSteps, HEDDLE_PORT_OPTIONAL).out("*", "out");
  type->desc.infer = [](const heddle_host*, heddle_infer* question) -> heddle_status* {
    const heddle_infer_service& service = *heddle::engine::infer_service();
    heddle_tensor_info info{};
    for (const char* path : {"", "a", "b", "b.list.0.number", "c", "a.number"})
      if (const heddle_value* part = service.part(question, 0, path))
        if (heddle_status* failed = service.known(question, 0, *path == 0 ? "all" : path, part))
          return failed;
    return service.in(question, 0, "b.picture", &info) == 0
               ? nullptr
               : service.out(question, 0, "picture", &info);
  };
  to.type = heddle::test::type_of(std::move(type));
  const ValueSpec told =
      infer(graph, heddle::engine::plugin_host(), {{{0, 0}, nested()}}).nodes[1].outputs[0];
  const auto names = part_of(told.parts.at("all"), "");
  BOOST_TEST(get_str(*part_of(names, "0")) == "b");
  BOOST_TEST(get_str(*part_of(names, "1")) == "a");
  BOOST_TEST(!part_of(names, "2"));
  BOOST_TEST(get_str(*told.parts.at("a")) == "here");
  BOOST_TEST(get_str(*part_of(told.parts.at("b"), "name")) == "a");
  BOOST_TEST(get_int(*told.parts.at("b.list.0.number")) == 1);
  BOOST_TEST(told.parts.size() == 4u);
  BOOST_TEST(told.tensors.empty());
}

BOOST_AUTO_TEST_SUITE_END()
