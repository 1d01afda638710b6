// Values that reach a call through links are held to what the port declares.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(door)

namespace {

constexpr std::uint32_t kSink = HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE;

struct Names {
  std::uint32_t size;
  const char* name;
};
constexpr Names kNewest{sizeof(Names), "newest"};

// What a node is given for "in", whose values are held to a declaration.
class Door : public TwoDevices {
 public:
  // Runs a node "from" that gives the value, and "to" that takes it.
  std::string refusal(const char* type, const heddle_widget& widget, const engine::Value& value,
                      std::uint32_t flags = 0, std::uint32_t from_flags = HEDDLE_NODE_IMPURE) {
    Flow flow;
    const auto from = flow.add(
        "from", Place::host, {}, [&](heddle_ctx& ctx) { ctx.set_output(0, value); }, from_flags);
    add_taker(flow, type, widget, flags, from);
    executed = asked = 0;
    return test::failure_of([&] { run(flow); });
  }

  static inline int executed = 0, asked = 0;

 private:
  static void add_taker(Flow& flow, const char* type, const heddle_widget& widget,
                        std::uint32_t flags, engine::NodeIndex from) {
    auto node = std::make_shared<TestNode>("test.taker", kSink);
    node->in("in", type, widget, flags).out("*", "out");
    node->desc.execute = [](void*, heddle_ctx* ctx) {
      return engine::to_status([&] {
        ++executed;
        give_number(*ctx, 1);
      });
    };
    if ((flags & HEDDLE_PORT_LAZY) != 0)
      node->desc.need = [](void*, heddle_ctx* ctx) {
        return engine::to_status([&] {
          ++asked;
          ctx->want("in");
        });
      };
    engine::Node made;
    made.id = "to";
    made.type = type_of(std::move(node));
    made.inputs.emplace_back(engine::Source{from, 0});
    const auto n = static_cast<engine::NodeIndex>(flow.graph.nodes.size());
    flow.graph.nodes.push_back(std::move(made));
    flow.graph.order.push_back(n);
    flow.graph.sinks.push_back(n);
    flow.plan.assignments.push_back({0, {0}, true, "by the test", {}});
  }
};

const heddle_widget kSteps = int_widget(20, 1, 10000);

engine::Value number(std::int64_t value) { return engine::make_value(value); }

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_linked_number_out_of_range_does_not_reach_the_node, Door) {
  for (const std::int64_t fine : {1, 10000}) {
    BOOST_TEST(refusal("INT", kSteps, number(fine)) == "");
    BOOST_TEST(executed == 1);
  }
  BOOST_TEST(refusal("INT", kSteps, number(4294967298)) ==
             "node 'to' (test.taker): input 'in': 4294967298 is above the greatest value 10000. "
             "Give a number from 1 to 10000.");
  BOOST_TEST(executed == 0);
  BOOST_TEST(refusal("INT", kSteps, number(0)) != "");
  BOOST_TEST(refusal("INT", seed_widget(), number(-1)) != "");
  BOOST_TEST(executed == 0);
}

BOOST_FIXTURE_TEST_CASE(a_linked_number_is_finite_unless_the_port_says_otherwise, Door) {
  const heddle_widget cfg = float_widget(8, 0, 100);
  const engine::Value nan = engine::make_value(std::nan(""));
  BOOST_TEST(refusal("FLOAT", cfg, nan) ==
             "node 'to' (test.taker): input 'in': nan is not a finite number. Give a number from 0 "
             "to 100.");
  BOOST_TEST(executed == 0);
  BOOST_TEST(refusal("FLOAT", cfg, nan, HEDDLE_PORT_NONFINITE) == "");
  BOOST_TEST(executed == 1);
}

BOOST_FIXTURE_TEST_CASE(a_linked_name_is_one_of_the_choices_that_plugins_bring, Door) {
  engine::Catalog catalog = *environment.catalog;
  catalog.add("test.names/0", engine::Extension{&kNewest, "test", nullptr});
  environment.catalog = std::make_shared<engine::Catalog>(std::move(catalog));
  const heddle_widget names = source_widget(HEDDLE_WIDGET_CHOICE, "test.names/0");
  BOOST_TEST(refusal("STRING", names, engine::make_value("newest")) == "");
  BOOST_TEST(refusal("STRING", names, engine::make_value("oldest")) ==
             "node 'to' (test.taker): input 'in': 'oldest' is not one of the choices. Choices: "
             "'newest'.");
  BOOST_TEST(executed == 0);
}

BOOST_FIXTURE_TEST_CASE(a_lazy_value_is_looked_at_when_it_arrives, Door) {
  BOOST_TEST(refusal("INT", kSteps, number(7), HEDDLE_PORT_LAZY) == "");
  BOOST_TEST(asked == 2);
  BOOST_TEST(executed == 1);
  BOOST_TEST(refusal("INT", kSteps, number(-7), HEDDLE_PORT_LAZY) != "");
  BOOST_TEST(asked == 1);  // not once more with the value
  BOOST_TEST(executed == 0);
}

BOOST_FIXTURE_TEST_CASE(a_value_from_the_cache_is_looked_at_too, Door) {
  const engine::Value far = number(-32);
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(refusal("INT", kSteps, far, 0, 0) != "", "run " << i);
    BOOST_TEST(executed == 0);
  }
  // The first run has put it there.
  Flow flow;
  const auto from = flow.add(
      "from", Place::host, {}, [](heddle_ctx&) {}, 0);
  BOOST_TEST(engine::get_int(*run(flow, {{from, 0}}).fetched.at({from, 0})) == -32);
}

BOOST_AUTO_TEST_SUITE_END()
