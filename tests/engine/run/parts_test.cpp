// Outputs that are read while they are being made: who reads them begins with their first rows, and
// nothing of them is seen elsewhere before they are whole. Nodes wait for one another, so that a
// case fails where they run one after another.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/text.h"
#include "tests/engine/run/rows.h"

using namespace heddle;
using namespace heddle::test;

BOOST_FIXTURE_TEST_SUITE(parts, TwoDevices)

BOOST_AUTO_TEST_CASE(a_reader_gets_each_row_before_the_next_one_is_made) {
  Meeting read;
  Flow flow;
  const auto rows = add_maker(flow, rows_one_by_one(read));
  const auto sum =
      flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 15);
}

BOOST_AUTO_TEST_CASE(they_go_through_a_node_that_passes_them_on_which_ends_behind_their_maker) {
  for (const std::uint32_t passes : {kParts | HEDDLE_PORT_PASS, kHostParts}) {
    Meeting read;
    std::atomic<bool> is_made{false}, is_begun_early{false};
    Flow flow;
    const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
      rows_one_by_one(read)(ctx);
      is_made = true;
    });
    const auto passed = add_passed(flow, rows, passes);
    const auto sum =
        flow.add("sum", Place::host, {{{passed, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
    // Who cannot read parts begins when all is there, of either. The two may run at once, and
    // Boost.Test takes a check from one thread at a time.
    const Action after = [&](heddle_ctx& ctx) {
      if (!is_made) is_begun_early = true;
      kWholeSum(ctx);
    };
    const auto of_rows =
        flow.add("of rows", Place::host, {{{rows, 0}, HEDDLE_PORT_HOST}}, after, kPartsSink);
    const auto of_passed =
        flow.add("of passed", Place::second, {{{passed, 0}, HEDDLE_PORT_HOST}}, after, kPartsSink);
    const engine::RunResult result = run(flow, {{sum, 0}, {of_rows, 0}, {of_passed, 0}});
    BOOST_TEST(!is_begun_early);
    for (const engine::NodeIndex n : {sum, of_rows, of_passed})
      BOOST_TEST(fetched(result, n) == 15);
    BOOST_TEST(result.timings.size() == 5u);
    // Who passes on ends behind who makes, and before who reads what it gives.
    std::vector<engine::NodeIndex> ended;
    for (const auto& timing : result.timings) ended.push_back(timing.node);
    const auto at = [&](engine::NodeIndex n) { return std::ranges::find(ended, n); };
    BOOST_TEST((at(rows) < at(passed)));
    BOOST_TEST((at(passed) < at(sum)));
  }
}

BOOST_AUTO_TEST_CASE(a_reader_on_a_device_or_with_another_link_to_the_maker_waits_for_all) {
  for (const bool is_on_device : {true, false}) {
    Meeting read;
    Flow flow;
    const auto rows = add_maker(flow, [](heddle_ctx& ctx) {
      const engine::Tensor made = make_rows(ctx);
      BOOST_TEST(!ctx.begin_output(0, made));
      for (std::int64_t row = 0; row < kRows; ++row) fill_row(made, row, 2);
      ctx.set_output(0, engine::make_value(made));
    });
    std::vector<TestInput> inputs{{{rows, 0}, kHostParts}};
    if (!is_on_device) inputs.push_back({{rows, 0}, HEDDLE_PORT_HOST});
    const auto sum = flow.add("sum", is_on_device ? Place::second : Place::host, inputs,
                              sum_of_rows(read), kPartsSink);
    BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 10);
  }
}

BOOST_AUTO_TEST_CASE(what_is_taken_back_is_read_anew) {
  for (const bool is_passed_on : {false, true}) {
    Meeting read;
    std::atomic<int> calls{0};
    Flow flow;
    const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
      const engine::Tensor first = make_rows(ctx);
      BOOST_TEST(ctx.begin_output(0, first));
      fill_row(first, 0, 100);
      ctx.made_rows(0, 1);
      read.wait_for(1);
      ctx.take_back_output(0);
      const engine::Tensor second = make_rows(ctx);
      for (std::int64_t row = 0; row < kRows; ++row) fill_row(second, row, 3);
      ctx.set_output(0, engine::make_value(second));
    });
    auto from = rows;
    if (is_passed_on) from = add_passed(flow, rows, kParts | HEDDLE_PORT_PASS);
    const auto sum = flow.add(
        "sum", Place::host, {{{from, 0}, kHostParts}},
        [&](heddle_ctx& ctx) {
          ++calls;
          sum_of_rows(read)(ctx);
        },
        kPartsSink);
    const engine::RunResult result = run(flow, {{sum, 0}});
    BOOST_TEST(fetched(result, sum) == 15);
    BOOST_TEST(calls == 2);
    BOOST_TEST(result.timings.size() == (is_passed_on ? 3u : 2u));
  }
}

BOOST_AUTO_TEST_CASE(a_reader_that_lacks_memory_beside_the_maker_waits_for_its_end) {
  std::atomic<int> calls{0};
  Meeting failed;
  Flow flow;
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, made));
    failed.wait_for(1);
    for (std::int64_t row = 0; row < kRows; ++row) fill_row(made, row, 1);
    ctx.made_rows(0, kRows);
    ctx.set_output(0, engine::make_value(made));
  });
  Meeting read;
  const auto sum = flow.add(
      "sum", Place::host, {{{rows, 0}, kHostParts}},
      [&](heddle_ctx& ctx) {
        if (++calls == 1) {
          failed.arrive();
          throw engine::Error(engine::Code::out_of_memory, "there is no room");
        }
        sum_of_rows(read)(ctx);
      },
      kPartsSink);
  BOOST_TEST(fetched(run(flow, {{sum, 0}}), sum) == 5);
  BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(when_the_maker_fails_its_readers_end_and_the_run_says_why_it_failed) {
  for (const bool is_passed_on : {false, true}) {
    Meeting read;
    std::atomic<bool> is_ended_well{false};
    Flow flow;
    const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
      const engine::Tensor made = make_rows(ctx);
      BOOST_TEST(ctx.begin_output(0, made));
      for (std::int64_t row = 0; row < kRows; ++row) fill_row(made, row, 1);
      ctx.made_rows(0, kRows);  // also the last one, which counts only when this has ended well
      read.wait_for(kRows - 1);
      throw engine::Error(engine::Code::internal, "it was meant to fail");
    });
    auto from = rows;
    if (is_passed_on) from = add_passed(flow, rows, kParts | HEDDLE_PORT_PASS);
    flow.add(
        "sum", Place::host, {{{from, 0}, kHostParts}},
        [&](heddle_ctx& ctx) {
          sum_of_rows(read)(ctx);
          is_ended_well = true;
        },
        kPartsSink);
    const std::string failure = failure_of([&] { run(flow); });
    BOOST_TEST(failure.find("it was meant to fail") != std::string::npos, failure);
    BOOST_TEST(failure.find("rows") != std::string::npos, failure);
    BOOST_TEST(!is_ended_well);
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_is_cancelled_ends_who_waits_for_rows) {
  Meeting waiting;
  Flow flow;
  engine::RunControl control;
  const auto rows = add_maker(flow, [&](heddle_ctx& ctx) {
    BOOST_TEST(ctx.begin_output(0, make_rows(ctx)));
    waiting.wait_for(1);
    control.stop();
    throw engine::Error(engine::Code::cancelled, "cancelled");
  });
  flow.add(
      "sum", Place::host, {{{rows, 0}, kHostParts}},
      [&](heddle_ctx& ctx) {
        waiting.arrive();
        ctx.await_rows(*tensor_of(ctx), 1);
        BOOST_TEST(false, "a row came that nobody made");
      },
      kPartsSink);
  BOOST_TEST(
      !failure_of([&] { engine::execute(flow.request(), environment, quiet, control); }).empty());
}

BOOST_AUTO_TEST_CASE(a_reader_that_fails_fails_the_run_and_its_maker_goes_on_to_see_it) {
  Flow flow;
  const auto rows = add_maker(flow, [](heddle_ctx& ctx) {
    const engine::Tensor made = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, made));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!ctx.cancelled() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    BOOST_TEST(ctx.cancelled());
    throw engine::Error(engine::Code::cancelled, "cancelled");
  });
  flow.add(
      "sum", Place::host, {{{rows, 0}, kHostParts}},
      [](heddle_ctx&) {
        throw engine::Error(engine::Code::invalid_argument, "it cannot write this");
      },
      kPartsSink);
  const std::string failure = failure_of([&] { run(flow); });
  BOOST_TEST(failure.find("it cannot write this") != std::string::npos, failure);
}

BOOST_AUTO_TEST_CASE(another_output_than_the_one_that_was_begun_is_refused) {
  Meeting read;
  Flow flow;
  const auto rows = add_maker(flow, [](heddle_ctx& ctx) {
    ctx.begin_output(0, make_rows(ctx));
    const engine::Tensor other = make_rows(ctx);
    ctx.set_output(0, engine::make_value(other));
  });
  flow.add("sum", Place::host, {{{rows, 0}, kHostParts}}, sum_of_rows(read), kPartsSink);
  const std::string failure = failure_of([&] { run(flow); });
  BOOST_TEST(failure.find("without taking it back") != std::string::npos, failure);
}

// Readers of several makers, at random, over and over: what is read is what is made.
BOOST_AUTO_TEST_CASE(many_makers_and_readers_at_once) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Meeting>> meetings;
    std::vector<engine::Source> sums;
    Flow flow;
    for (int i = 0; i < 6; ++i) {
      Meeting& read = *meetings.emplace_back(std::make_unique<Meeting>());
      const bool is_back = (round + i) % 3 == 0;
      const Action make = [is_back](heddle_ctx& ctx) {
        const engine::Tensor first = make_rows(ctx), second = make_rows(ctx);
        const bool is_begun = ctx.begin_output(0, first);
        for (std::int64_t row = 0; row < kRows; ++row) {
          fill_row(first, row, float(row));
          fill_row(second, row, float(row));
          ctx.made_rows(0, row + 1);
          std::this_thread::yield();
        }
        if (is_back && is_begun) ctx.take_back_output(0);
        ctx.set_output(0, engine::make_value(is_back ? second : first));
      };
      const auto rows =
          add_maker(flow, make, engine::cat("rows ", i), i % 2 == 0 ? Place::first : Place::second);
      const auto passed =
          add_passed(flow, rows, kParts | HEDDLE_PORT_PASS, engine::cat("passed ", i));
      for (int k = 0; k < 2; ++k)
        sums.push_back({flow.add(engine::cat("sum ", i, " ", k), Place::host,
                                 {{{passed, 0}, kHostParts}}, sum_of_rows(read), kPartsSink),
                        0});
    }
    const engine::RunResult result = run(flow, sums);
    for (const engine::Source& sum : sums) BOOST_TEST(fetched(result, sum.node) == 10);
  }
}

BOOST_AUTO_TEST_SUITE_END()
