// Outputs that are lists: their readers are called once for each element, or get them whole.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/program/infer.h"
#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Value;

BOOST_AUTO_TEST_SUITE(lists)

namespace {

constexpr std::uint32_t kSink = HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE;
constexpr std::uint32_t kPure = 0;

Value list_of(const std::vector<std::int64_t>& numbers) {
  engine::List list;
  for (const std::int64_t number : numbers) list.items.push_back(engine::make_value(number));
  return engine::make_value(std::move(list));
}

// "5", "[1,2]", "nothing".
std::string text_of(const heddle_value* value) {
  return value == nullptr ? "nothing" : engine::write_json(engine::to_json(*value));
}

class Lists : public TwoDevices {
 public:
  Flow flow;

  engine::NodeIndex add_list(const std::string& id, const std::vector<std::int64_t>& numbers,
                             std::uint32_t flags = HEDDLE_NODE_IMPURE) {
    return flow.add(
        id, Place::host, {}, [=](heddle_ctx& ctx) { ctx.set_output(0, list_of(numbers)); }, flags,
        nullptr, HEDDLE_PORT_LIST);
  }
  // A node that gives the sum of its inputs, and notes each of its calls.
  engine::NodeIndex add_sum(const std::string& id, const std::vector<TestInput>& inputs,
                            std::uint32_t flags = kSink) {
    return flow.add(
        id, Place::host, inputs,
        [this, count = inputs.size()](heddle_ctx& ctx) {
          std::int64_t sum = 0;
          for (std::uint32_t i = 0; i < count; ++i) sum += number_of(ctx, i);
          calls.push_back(sum);
          give_number(ctx, sum);
        },
        flags);
  }
  // What the node reads, as one text: "1|[2,3]".
  engine::NodeIndex add_reader(const std::string& id, const std::vector<TestInput>& inputs) {
    return flow.add(
        id, Place::host, inputs,
        [this, count = inputs.size()](heddle_ctx& ctx) {
          std::string text;
          for (std::uint32_t i = 0; i < count; ++i)
            text += engine::cat(i > 0 ? "|" : "", text_of(ctx.input(i)));
          read.push_back(text);
          give_number(ctx, 0);
        },
        kSink);
  }
  std::string result(engine::NodeIndex node) {
    return text_of(run(flow, {{node, 0}}).fetched.at({node, 0}).get());
  }

  std::vector<std::int64_t> calls;
  std::vector<std::string> read;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_reader_is_called_for_each_element, Lists) {
  const auto one = add_list("one", {1, 2, 3}), two = add_list("two", {10, 20});
  const auto plain = flow.add("plain", Place::host, {}, [](heddle_ctx& c) { give_number(c, 100); });
  const auto sum = add_sum("sum", {{{one, 0}}, {{two, 0}}, {{plain, 0}}});
  BOOST_TEST(result(sum) == "[111,122,123]");  // of the shorter list the last is repeated
  BOOST_TEST((calls == std::vector<std::int64_t>{111, 122, 123}));
}

BOOST_FIXTURE_TEST_CASE(what_the_calls_make_is_a_list_for_the_next, Lists) {
  const auto one = add_list("one", {1, 2});
  const auto first = add_sum("first", {{{one, 0}}}, HEDDLE_NODE_IMPURE);
  const auto second = add_sum("second", {{{first, 0}}, {{one, 0}}});
  BOOST_TEST(result(second) == "[2,4]");
}

BOOST_FIXTURE_TEST_CASE(an_input_may_want_the_whole_list, Lists) {
  const auto one = add_list("one", {1, 2, 3});
  const auto plain = flow.add("plain", Place::host, {}, [](heddle_ctx& c) { give_number(c, 7); });
  const auto all = add_reader(
      "all",
      {{{one, 0}, HEDDLE_PORT_LIST}, {{plain, 0}, HEDDLE_PORT_LIST}, {{one, 0}}, {{plain, 0}}});
  // The others of such a node get the first element.
  BOOST_TEST(result(all) == "0");
  BOOST_TEST((read == std::vector<std::string>{"[1,2,3]|[7]|1|7"}));
}

BOOST_FIXTURE_TEST_CASE(lists_of_several_calls_are_joined, Lists) {
  const auto counts = add_list("counts", {1, 0, 2});
  const auto made = flow.add(
      "made", Place::host, {{{counts, 0}}},
      [](heddle_ctx& ctx) {
        const std::int64_t count = number_of(ctx, 0);
        ctx.set_output(0, list_of(std::vector<std::int64_t>(std::size_t(count), count)));
      },
      HEDDLE_NODE_IMPURE, nullptr, HEDDLE_PORT_LIST);
  const auto all = add_reader("all", {{{made, 0}, HEDDLE_PORT_LIST}});
  result(all);
  BOOST_TEST((read == std::vector<std::string>{"[1,2,2]"}));
}

BOOST_FIXTURE_TEST_CASE(of_empty_lists_nothing_is_called, Lists) {
  const auto none = add_list("none", {}), some = add_list("some", {1, 2});
  const auto sum = add_sum("sum", {{{none, 0}}}, HEDDLE_NODE_IMPURE);
  const auto all = add_reader("all", {{{sum, 0}, HEDDLE_PORT_LIST}});
  result(all);
  BOOST_TEST(calls.empty());
  BOOST_TEST((read == std::vector<std::string>{"[]"}));
  add_sum("both", {{{some, 0}}, {{none, 0}}});
  BOOST_TEST(failure_of([&] { run(flow); }) ==
             "node 'both' (test.action): input 'b': the list is empty, but the one of input 'a' "
             "has 2 elements. Give lists that are both empty, or none that is.");
}

BOOST_FIXTURE_TEST_CASE(a_first_element_has_to_be_there, Lists) {
  const auto none = add_list("none", {}), some = add_list("some", {1, 2});
  add_reader("all", {{{some, 0}, HEDDLE_PORT_LIST}, {{none, 0}}});
  BOOST_TEST(failure_of([&] { run(flow); }) ==
             "node 'all' (test.action): input 'b': the list is empty, and one element is needed");
}

BOOST_FIXTURE_TEST_CASE(an_output_that_is_a_list_has_to_be_set_to_one, Lists) {
  const auto made = [&](const std::string& id, std::vector<TestInput> inputs) {
    return flow.add(
        id, Place::host, inputs, [](heddle_ctx& ctx) { give_number(ctx, 5); }, kSink, nullptr,
        HEDDLE_PORT_LIST);
  };
  made("one", {});
  BOOST_TEST(failure_of([&] { run(flow); }) ==
             "node 'one' (test.action): the output 'out' is a list, the node set it to the "
             "integer 5");
  flow = Flow();
  const auto some = add_list("some", {1, 2});
  made("each", {{{some, 0}}});
  BOOST_TEST(failure_of([&] { run(flow); }) ==
             "node 'each' (test.action): the output 'out' is a list, the node set it to the "
             "integer 5 in call 1 of 2");
}

BOOST_FIXTURE_TEST_CASE(a_call_that_fails_is_named, Lists) {
  const auto some = add_list("some", {1, 2, 3});
  flow.add(
      "odd", Place::host, {{{some, 0}}},
      [](heddle_ctx& ctx) {
        if (number_of(ctx, 0) == 2) throw engine::Error(engine::Code::invalid_argument, "not two");
        give_number(ctx, 0);
      },
      kSink);
  BOOST_TEST(failure_of([&] { run(flow); }) == "node 'odd' (test.action) / call 2 of 3: not two");
}

// Each waits for the others to have begun.
BOOST_FIXTURE_TEST_CASE(deferred_calls_go_on_beside_each_other, Lists) {
  const auto some = add_list("some", {1, 2, 3});
  Meeting meeting;
  std::vector<std::thread> threads;
  const auto each = flow.add(
      "each", Place::host, {{{some, 0}}},
      [&](heddle_ctx& ctx) {
        heddle_completion* const completion = ctx.defer();
        give_number(ctx, 2 * number_of(ctx, 0));
        threads.emplace_back([&meeting, completion] {
          meeting.meet(3);
          completion->finish(nullptr);
        });
      },
      kSink);
  BOOST_TEST(result(each) == "[2,4,6]");
  for (std::thread& thread : threads) thread.join();
}

// The run waits for those that are under way, whichever way the others end.
BOOST_FIXTURE_TEST_CASE(deferred_calls_are_waited_for_when_another_fails, Lists) {
  for (const bool is_deferred : {false, true}) {
    flow = Flow();
    const auto some = add_list("some", {1, 2});
    std::atomic<bool> has_finished{false};
    std::vector<std::thread> threads;
    flow.add(
        "each", Place::host, {{{some, 0}}},
        [&](heddle_ctx& ctx) {
          const bool fails = number_of(ctx, 0) == 2;
          if (fails && !is_deferred) throw engine::Error(engine::Code::internal, "broken");
          heddle_completion* const completion = ctx.defer();
          give_number(ctx, 0);
          threads.emplace_back([&, fails, completion] {
            if (!fails) std::this_thread::yield();
            if (!fails) has_finished = true;
            completion->finish(fails ? engine::to_status([] {
              throw engine::Error(engine::Code::internal, "broken");
            })
                                     : nullptr);
          });
        },
        kSink);
    BOOST_TEST(failure_of([&] { run(flow); }).ends_with("broken"));
    BOOST_TEST(has_finished);
    for (std::thread& thread : threads) thread.join();
  }
}

BOOST_FIXTURE_TEST_CASE(each_call_may_ask_for_lazy_inputs, Lists) {
  const auto which = add_list("which", {0, 1, 0}), even = add_list("even", {10, 20, 30}),
             odd = add_list("odd", {11, 21, 31}), unasked = add_list("unasked", {0});
  int asked = 0;
  const auto choose = flow.add(
      "choose", Place::host,
      {{{which, 0}},
       {{even, 0}, HEDDLE_PORT_LAZY},
       {{odd, 0}, HEDDLE_PORT_LAZY},
       {{unasked, 0}, HEDDLE_PORT_LAZY}},
      [](heddle_ctx& ctx) {
        BOOST_TEST(ctx.input(3) == nullptr);
        give_number(ctx, number_of(ctx, std::uint32_t(1 + number_of(ctx, 0))));
      },
      kSink,
      [&](heddle_ctx& ctx) {
        ++asked;
        ctx.want(number_of(ctx, 0) == 0 ? "b" : "c");
      });
  BOOST_TEST(result(choose) == "[10,21,30]");
  BOOST_TEST(asked == 6);  // each before and after
}

BOOST_FIXTURE_TEST_CASE(a_lazy_list_may_be_longer_than_the_others, Lists) {
  const auto one = flow.add("one", Place::host, {}, [](heddle_ctx& c) { give_number(c, 1); });
  const auto lazy = add_list("lazy", {5, 6});
  const auto sum = flow.add(
      "sum", Place::host, {{{one, 0}}, {{lazy, 0}, HEDDLE_PORT_LAZY}},
      [](heddle_ctx& ctx) { give_number(ctx, number_of(ctx, 0) + number_of(ctx, 1)); }, kSink,
      [](heddle_ctx& ctx) { ctx.want("b"); });
  BOOST_TEST(result(sum) == "[6,7]");
}

BOOST_FIXTURE_TEST_CASE(what_the_calls_show_is_joined, Lists) {
  const auto some = add_list("some", {1, 2});
  const auto show = flow.add(
      "show", Place::host, {{{some, 0}}},
      [](heddle_ctx& ctx) {
        ctx.wrote("", engine::cat(R"({"text": [")", number_of(ctx, 0), R"("]})"));
        give_number(ctx, 0);
      },
      kSink);
  const engine::RunResult done = run(flow);
  BOOST_TEST(done.ui.at(show) == R"({"text":["1","2"]})");
}

BOOST_FIXTURE_TEST_CASE(progress_is_that_of_all_calls, Lists) {
  struct Progress final : engine::Observer {
    void node_progress(const engine::Node&, double fraction, std::string_view) override {
      seen.push_back(fraction);
    }
    std::vector<double> seen;
  } progress;
  const auto some = add_list("some", {1, 2});
  flow.add(
      "work", Place::host, {{{some, 0}}},
      [](heddle_ctx& ctx) {
        ctx.progress(0.5, "");
        ctx.progress(1, "");
        give_number(ctx, 0);
      },
      kSink);
  engine::RunControl control;
  engine::execute(flow.request(), environment, progress, control);
  BOOST_TEST(progress.seen == (std::vector{0.25, 0.5, 0.75, 1.0}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_list_is_cached_as_one_value, Lists) {
  add_sum("sum", {{{add_list("some", {1, 2}, kPure), 0}}}, HEDDLE_NODE_SINK);
  run(flow);
  run(flow);
  BOOST_TEST((calls == std::vector<std::int64_t>{1, 2}));
}

// What a call reads is where its node runs.
BOOST_FIXTURE_TEST_CASE(tensors_in_a_list_go_to_their_reader, Lists) {
  const auto info = [] {
    heddle_tensor_info one{};
    one.dtype = HEDDLE_F32;
    one.rank = 1;
    one.shape[0] = 4;
    one.stride[0] = 1;
    return one;
  };
  const auto made = flow.add(
      "made", Place::first, {},
      [&](heddle_ctx& ctx) {
        engine::List list;
        for (const float number : {1.f, 2.f}) {
          const float numbers[4]{number, number, number, number};
          list.items.push_back(engine::make_value(ctx.upload(info(), numbers)));
        }
        ctx.set_output(0, engine::make_value(std::move(list)));
      },
      HEDDLE_NODE_IMPURE, nullptr, HEDDLE_PORT_LIST);
  std::vector<float> seen;
  flow.add(
      "look", Place::second, {{{made, 0}}},
      [&](heddle_ctx& ctx) {
        float numbers[4];
        const engine::Tensor& tensor = engine::get_tensor(*ctx.input(0));
        ctx.read(tensor.get(), numbers, sizeof numbers);
        seen.push_back(numbers[3]);
        give_number(ctx, 0);
      },
      kSink);
  run(flow);
  BOOST_TEST((seen == std::vector<float>{1, 2}));
}

BOOST_FIXTURE_TEST_CASE(inference_does_not_ask_for_elements, Lists) {
  const auto some = add_list("some", {1, 2});
  static bool is_asked;
  is_asked = false;
  auto node = std::make_shared<TestNode>("test.shapes", kSink);
  node->in("a", "*").out("*", "out");
  node->desc.infer = [](const heddle_host*, heddle_infer*) -> heddle_status* {
    is_asked = true;
    return nullptr;
  };
  engine::Node reader;
  reader.id = "reader";
  reader.type = type_of(std::move(node));
  reader.inputs.emplace_back(engine::Source{some, 0});
  flow.graph.order.push_back(engine::NodeIndex(flow.graph.nodes.size()));
  flow.graph.nodes.push_back(std::move(reader));
  engine::mark_mapped(flow.graph);
  const engine::Inferred inferred =
      engine::infer(flow.graph, environment.host, {}, environment.catalog.get());
  BOOST_TEST(!is_asked);
  BOOST_TEST(inferred.pending.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
