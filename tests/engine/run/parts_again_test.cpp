// Readers of what is still being made that have to read it once more, that other runs compute too,
// or that go on after their call; and makers that begin their outputs where nobody may read them.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/text.h"
#include "engine/memory/ledger.h"
#include "tests/engine/run/rows.h"
#include "tests/engine/run/shared_runs.h"

using namespace heddle;
using namespace heddle::test;

namespace {

using std::chrono::milliseconds;

void fill_rows(const engine::Tensor& rows, float number) {
  for (std::int64_t row = 0; row < kRows; ++row) fill_row(rows, row, number);
}
void give_rows(heddle_ctx& ctx, const engine::Tensor& rows) {
  fill_rows(rows, 1);
  ctx.made_rows(0, kRows);
  ctx.set_output(0, engine::make_value(rows));
}
// Until `holds`, or for very long.
template <class Holds>
bool await(Holds&& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Nothing is cached, and copies between devices and the host count as such.
struct SharedParts : SharedRuns {
  SharedParts() : SharedRuns(0) {
    const std::size_t sides = environment.devices.size() + 1;
    for (std::size_t i = 0; i < environment.topology.links.size(); ++i)
      if (i / sides != i % sides)
        environment.topology.links[i].kind = engine::LinkFacts::Kind::through_host;
  }
  // "sum" reads "rows" in parts, and "passed", where there is one, the value as it was made.
  engine::NodeIndex fill(Flow& flow, const std::string& run, Action make, Action sum,
                         bool is_passed) {
    const auto rows =
        flow.add("rows of " + run, Place::first, {}, std::move(make), 0, nullptr, kParts);
    std::vector<TestInput> sums;
    sums.push_back(
        {{flow.add("sum of " + run, Place::host, {{{rows, 0}, kHostParts}}, std::move(sum), 0),
          0}});
    if (is_passed)
      sums.push_back({{flow.add("passed of " + run, Place::host, {{{rows, 0}, HEDDLE_PORT_PASS}},
                                kWholeSum, HEDDLE_NODE_IMPURE),
                       0}});
    return flow.add("end of " + run, Place::host, sums, [is_passed](heddle_ctx& ctx) {
      give_number(ctx, number_of(ctx, 0) + (is_passed ? number_of(ctx, 1) : 0));
    });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(parts_again, TwoDevices)

// The other run has made the rows before, and works on what it reads of them.
BOOST_FIXTURE_TEST_CASE(what_reads_parts_is_not_taken_from_another_run, SharedParts) {
  for (const bool is_passed : {false, true}) {
    Meeting reads, may_end, read;
    Flow other, flow;
    const Action make_all = [](heddle_ctx& ctx) { give_rows(ctx, make_rows(ctx)); };
    const auto other_end = fill(
        other, "other", make_all,
        [&](heddle_ctx& ctx) {
          reads.arrive();
          may_end.wait_for(1);
          kWholeSum(ctx);
        },
        is_passed);
    std::atomic<bool> is_called{false};
    const auto end = fill(
        flow, "this",
        [&](heddle_ctx& ctx) {
          const engine::Tensor rows = make_rows(ctx);
          BOOST_TEST(ctx.begin_output(0, rows));
          await([&] { return is_called || environment.flights.waiting() > 0; });
          may_end.arrive();
          if (!is_called) std::this_thread::sleep_for(milliseconds(200));
          give_rows(ctx, rows);
        },
        [&](heddle_ctx& ctx) {
          is_called = true;
          sum_of_rows(read)(ctx);
        },
        is_passed);
    OneRun first(*this, other, other_end);
    reads.wait_for(1);
    OneRun second(*this, flow, end);
    second.wait();
    first.wait();
    for (const OneRun* run : {&first, &second})
      BOOST_TEST(run->value() == (is_passed ? 10 : 5), run->failure());
    BOOST_TEST(is_called);
  }
}

BOOST_AUTO_TEST_CASE(a_reader_that_turns_out_to_be_called_for_each_element_waits_for_the_whole) {
  Meeting read;
  std::atomic<bool> is_made{false};
  Flow flow;
  const auto many = flow.add("many", Place::second, {}, [](heddle_ctx& ctx) {
    ctx.set_output(
        0,
        engine::make_value(engine::List{
            {engine::make_value(std::int64_t{10}), engine::make_value(std::int64_t{20})}, true}));
  });
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    BOOST_TEST(await([&] { return ctx.begin_output(0, made); }));
    std::this_thread::sleep_for(milliseconds(100));
    is_made = true;
    give_rows(ctx, made);
  });
  const auto sum = flow.add(
      "sum", Place::host, {{{rows, 0}, kHostParts}, {{many, 0}, HEDDLE_PORT_HOST}},
      [&](heddle_ctx& ctx) {
        if (!is_made) throw engine::Error(engine::Code::internal, "it was called too early");
        sum_of_rows(read)(ctx);
        give_number(ctx, row_of(tensor_of(ctx), 0) + number_of(ctx, 1));
      },
      kPartsSink);
  const engine::RunResult result = run(flow, {{sum, 0}});
  const auto& sums = std::get<engine::List>(result.fetched.at({sum, 0})->content).items;
  BOOST_REQUIRE(sums.size() == 2u);
  BOOST_TEST(engine::get_int(*sums[0]) == 11);
  BOOST_TEST(engine::get_int(*sums[1]) == 21);
}

BOOST_AUTO_TEST_CASE(a_reader_whose_room_the_maker_has_waits_for_its_end) {
  constexpr std::uint64_t kMiB = 1 << 20;
  environment.host_ledger =
      std::make_shared<engine::Ledger>("host", engine::Ledger::Limits{.budget = 16 * kMiB});
  std::atomic<int> shortages{0};
  environment.host_ledger->on_shortage(engine::EvictionOrder::free_chunks, this,
                                       [&](std::uint64_t) { ++shortages; });
  Meeting read;
  Flow flow;
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    {
      const engine::Reservation room = environment.host_ledger->reserve(8 * kMiB, "a test");
      BOOST_TEST(ctx.begin_output(0, made));
      BOOST_TEST(await([&] { return shortages > 0; }));
      std::this_thread::sleep_for(milliseconds(20));
    }
    give_rows(ctx, made);
  });
  const auto sum =
      flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
  flow.plan.host_bytes = {0, 12 * kMiB};
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 5);
  environment.host_ledger->remove_evict_callback(this);
}

BOOST_AUTO_TEST_CASE(a_deferred_reader_of_what_is_taken_back_reads_it_anew) {
  Meeting read;
  std::vector<std::jthread> threads;
  Flow flow;
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor first = make_rows(ctx), second = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, first));
    fill_row(first, 0, 100);
    ctx.made_rows(0, 1);
    read.wait_for(1);
    ctx.take_back_output(0);
    give_rows(ctx, second);
  });
  const auto sum = flow.add(
      "sum", Place::host, {{{rows, 0}, kHostParts}},
      [&](heddle_ctx& ctx) {
        heddle_completion* const completion = ctx.defer();
        threads.emplace_back([&read, &ctx, completion] {
          completion->finish(engine::to_status([&] { sum_of_rows(read)(ctx); }));
        });
      },
      kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 5);
  BOOST_TEST(threads.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_maker_goes_on_after_its_call_and_begins_nothing_more) {
  Meeting read;
  std::jthread thread;
  Flow flow;
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, made));
    heddle_completion* const completion = ctx.defer();
    thread = std::jthread([&read, &ctx, completion, made] {
      completion->finish(engine::to_status([&] {
        for (std::int64_t row = 0; row < kRows; ++row) {
          read.wait_for(int(row));
          fill_row(made, row, 2);
          ctx.made_rows(0, row + 1);
        }
        ctx.take_back_output(0);
        BOOST_TEST(!ctx.begin_output(0, made));
        ctx.set_output(0, engine::make_value(made));
      }));
    });
  });
  const auto sum =
      flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 10);
}

// Its readers could not begin before it has ended.
BOOST_AUTO_TEST_CASE(a_maker_on_the_host_begins_nothing) {
  Meeting read;
  std::jthread thread;
  Flow flow;
  const auto rows = add_maker(
      flow,
      [&](heddle_ctx& ctx) {
        const engine::Tensor made = make_rows(ctx);
        BOOST_TEST(!ctx.begin_output(0, made));
        heddle_completion* const completion = ctx.defer();
        thread = std::jthread([&ctx, completion, made] {
          completion->finish(engine::to_status([&] { give_rows(ctx, made); }));
        });
      },
      "rows", Place::host);
  const auto sum =
      flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 5);
}

BOOST_AUTO_TEST_CASE(nothing_is_begun_by_a_node_that_is_asked_what_it_needs) {
  Meeting read;
  Flow flow;
  const auto late =
      flow.add("late", Place::second, {}, [](heddle_ctx& ctx) { give_number(ctx, 3); });
  const auto rows = flow.add(
      "rows", Place::first, {{{late, 0}, HEDDLE_PORT_LAZY}},
      [&](heddle_ctx& ctx) { rows_one_by_one(read, float(number_of(ctx, 0)))(ctx); },
      HEDDLE_NODE_IMPURE,
      [](heddle_ctx& ctx) {
        const engine::Tensor made = make_rows(ctx);
        BOOST_TEST(!ctx.begin_output(0, made));
        ctx.want("a");
      },
      kParts);
  const auto sum =
      flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 25);
}

// What cannot be told by rows, and another look at the memory that was begun.
BOOST_AUTO_TEST_CASE(an_output_is_begun_row_by_row_and_is_the_same_tensor_in_the_end) {
  const auto looked_at = [](const engine::Tensor& rows, std::int64_t count, std::int64_t row) {
    heddle_tensor_info info = rows->info;
    info.shape[0] = count;
    info.stride[0] = row * 3;
    return engine::view(rows, info, 0);
  };
  for (const bool is_begun_so : {false, true}) {
    Meeting read;
    Flow flow;
    const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
      const engine::Tensor made = make_rows(ctx);
      fill_rows(made, 1);
      if (is_begun_so)
        BOOST_TEST(!ctx.begin_output(0, looked_at(made, 2, 2)));
      else
        BOOST_TEST(ctx.begin_output(0, made));
      ctx.set_output(0, engine::make_value(is_begun_so ? made : looked_at(made, kRows - 1, 1)));
    });
    flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
    const std::string failure = failure_of([&] { run(flow); });
    BOOST_TEST((failure.find("without taking it back") == std::string::npos) == is_begun_so,
               failure);
  }
}

// A call is used again for the next node.
BOOST_AUTO_TEST_CASE(what_a_call_made_for_the_user_ends_with_it) {
  Flow flow;
  const auto n = flow.add("one", Place::host, {}, kPassOn);
  engine::RunControl control;
  const engine::NodeCall::Shared shared{environment, quiet, control, {}};
  engine::NodeCall call(shared);
  for (const bool is_first : {true, false}) {
    call.begin(flow.graph.nodes[n], environment.devices[0], flow.plan.assignments[n], n);
    BOOST_TEST(!call.has_made_for_user());
    BOOST_TEST(call.take_for_user() == nullptr);
    if (is_first) call.wrote("a file", R"({"text": ["it"]})");
    call.end();
  }
}

// A saver that waits for its turn holds up nobody's flight as long as its maker works.
BOOST_AUTO_TEST_CASE(who_waits_to_write_waits_for_the_end_of_its_maker_first) {
  environment.folders.output = [](std::string_view) { return std::string("here"); };
  engine::RunControl control;
  control.hold_writing();
  Meeting read, called;
  Flow flow;
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, made));
    called.wait_for(1);
    std::this_thread::sleep_for(milliseconds(50));
    BOOST_TEST(!control.has_computed());
    give_rows(ctx, made);
  });
  const auto sum = flow.add(
      "sum", Place::host, {{{rows, 0}, kHostParts}},
      [&](heddle_ctx& ctx) {
        called.arrive();
        BOOST_TEST(ctx.output_folder("output") == "here");
        sum_of_rows(read)(ctx);
      },
      kPartsSink);
  std::jthread allow([&] {
    await([&] { return control.has_computed(); });
    control.allow_writing();
  });
  const engine::RunResult result =
      engine::execute(flow.request({{sum, 0}}), environment, quiet, control);
  BOOST_TEST(fetched(result, sum) == 5);
}

BOOST_AUTO_TEST_CASE(the_time_in_which_a_reader_waits_is_not_its_own) {
  for (const bool is_row_awaited : {false, true}) {
    Flow flow;
    const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
      const engine::Tensor made = make_rows(ctx);
      BOOST_TEST(ctx.begin_output(0, made));
      std::this_thread::sleep_for(milliseconds(400));
      give_rows(ctx, made);
    });
    const auto sum = flow.add(
        "sum", Place::host, {{{rows, 0}, kHostParts}},
        [&](heddle_ctx& ctx) {
          if (is_row_awaited) ctx.await_rows(*tensor_of(ctx), kRows);
          give_number(ctx, 1);
        },
        kPartsSink);
    for (const engine::NodeTiming& timing : run(flow).timings)
      BOOST_TEST((timing.node == sum ? timing.seconds < 0.3 : timing.seconds >= 0.4),
                 timing.seconds);
  }
}

BOOST_AUTO_TEST_CASE(an_output_is_begun_for_a_reader_that_waits_for_another_maker_as_well) {
  Meeting read, begun;
  Flow flow;
  const auto late = flow.add("late", Place::second, {}, [&](heddle_ctx& ctx) {
    begun.wait_for(1);
    give_number(ctx, 3);
  });
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, made));
    begun.arrive();
    for (std::int64_t row = 0; row < kRows; ++row) {
      read.wait_for(int(row));
      fill_row(made, row, 4);
      ctx.made_rows(0, row + 1);
    }
    ctx.set_output(0, engine::make_value(made));
  });
  const auto sum =
      flow.add("sum", Place::host, {{{rows, 0}, kHostParts}, {{late, 0}, HEDDLE_PORT_HOST}},
               sum_of_rows(read), kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 20);
}

BOOST_AUTO_TEST_SUITE_END()
