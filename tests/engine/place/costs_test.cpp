// Costs files, and which figure counts.
#include "engine/place/costs.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/place/call_steps.h"
#include "tests/support/refusal.h"

using namespace heddle;
using namespace heddle::engine;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_SUITE(costs)

namespace {

Topology cards() {
  Topology topology;
  topology.devices = {{"cpu:0", "cpu", "Processor", true, HEDDLE_F32, 0, 0, 0, 0, 0},
                      {"gpu:0", "gpu", "Card", false, HEDDLE_BF16, 0, 0, 0, 1e14, 0},
                      {"gpu:1", "gpu", "Card", false, HEDDLE_BF16, 0, 0, 0, 1e14, 0}};
  return topology;
}

std::string refusal(const std::string& text) {
  return test::refusal_of([&] { read_costs(text, "c.json"); }).what();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_is_read_and_written_and_what_others_keep_in_it_stays) {
  const std::string text =
      R"({"algorithms": {"x": [1, 2]}, "devices": {"Card": {"flops_per_second": 2e14, "launch_seconds": 3e-06}},
                               "links": {"Card -> host": {"bytes_per_second": 1e10}}})";
  const Costs costs = read_costs(text, "c.json");
  BOOST_TEST(costs.devices.at("Card").flops_per_second == 2e14);
  BOOST_TEST(costs.devices.at("Card").bytes_per_second == 0);
  BOOST_TEST(costs.links.at({"Card", "host"}).bytes_per_second == 1e10);
  const std::string written = write_costs(costs);
  BOOST_TEST((parse_json(written, "w") == parse_json(text, "t")));
  BOOST_TEST(write_costs(read_costs(written, "w")) == written);
}

BOOST_AUTO_TEST_CASE(faults_are_refused_with_their_place) {
  BOOST_TEST(refusal("[]").find("c.json:1:1: a costs file is an object") == 0u);
  BOOST_TEST(refusal(R"({"devices": {"Card": {"flops_per_secnd": 1}}})")
                 .find("Did you mean 'flops_per_second'") != std::string::npos);
  BOOST_TEST(refusal(R"({"devices": {"Card": {"flops_per_second": -1}}})")
                 .find("needs a number above 0") != std::string::npos);
  BOOST_TEST(refusal(R"({"devices": {"Card": {"flops_per_second": "fast"}}})")
                 .find("needs a number above 0") != std::string::npos);
  BOOST_TEST(refusal(R"({"links": {"Card": {}}})").find("MODEL -> MODEL") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(measured_figures_come_before_told_ones_and_these_before_guesses) {
  const Prices reported(cards(), {});
  BOOST_TEST(reported.rates(1).computing_seconds({OpKind::other, 1e14, 0}) == 1);
  Costs costs;
  costs.devices["Card"] = {5e13, 0, 1};
  const Prices measured(cards(), costs);
  BOOST_TEST(measured.rates(1).computing_seconds({OpKind::other, 1e14, 0}) == 2);
  BOOST_TEST(measured.rates(2).computing_seconds({OpKind::other, 0, 0}) +
                 3 * measured.rates(2).launch_seconds ==
             3);
  BOOST_TEST(reported.rates(0).computing_seconds({OpKind::other, 1e12, 0}) >
             reported.rates(1).computing_seconds(
                 {OpKind::other, 1e12, 0}));  // a processor is guessed to be slower than a card
}

BOOST_AUTO_TEST_CASE(work_takes_its_arithmetic_or_its_memory_whichever_is_more) {
  Costs costs;
  costs.devices["Card"] = {1e12, 1e9, 1e-3};
  const Prices prices(cards(), costs);
  BOOST_TEST(prices.rates(1).computing_seconds({OpKind::other, 1e12, 5e8}) == 1);
  BOOST_TEST(prices.rates(1).computing_seconds({OpKind::other, 1e11, 5e8}) == 0.5);
  BOOST_TEST(prices.rates(1).computing_seconds({OpKind::other, 1e11, 5e8}) +
                 500 * prices.rates(1).launch_seconds ==
             1);
}

BOOST_AUTO_TEST_CASE(an_op_goes_at_the_rate_of_its_kind) {
  const auto seconds = [](const DeviceCosts& of_card, OpKind kind, double busy = 1) {
    Costs costs;
    costs.devices["Card"] = of_card;
    const Prices prices(cards(), read_costs(write_costs(costs), "c.json"));
    return prices.rates(1).seconds({kind, 1e12, 5e8}, busy);
  };
  const auto near = tt::tolerance(1e-9);
  const DeviceCosts measured{1e12, 1e9, 0.25, 5e11, 4e12};
  BOOST_TEST(seconds(measured, OpKind::gemm) == 1.25, near);
  BOOST_TEST(seconds(measured, OpKind::attention) == 2.25, near);
  BOOST_TEST(seconds(measured, OpKind::fp8_gemm) == 0.75, near);  // its bytes take longer
  const DeviceCosts unknown{1e12, 1e9, 0.25};
  BOOST_TEST(seconds(unknown, OpKind::attention) == 0.25 + 1 / 0.75, near);
  BOOST_TEST(seconds(unknown, OpKind::fp8_gemm) == 1.25, near);
  BOOST_TEST(seconds(unknown, OpKind::int8_gemm) == 1.25, near);
  const DeviceCosts whole{.flops_per_second = 1e12,
                          .bytes_per_second = 1e9,
                          .launch_seconds = 0.25,
                          .int8_flops_per_second = 1.6e12};
  BOOST_TEST(seconds(whole, OpKind::int8_gemm) == 0.25 + 1 / 1.6, near);
  BOOST_TEST(seconds(whole, OpKind::fp8_gemm) == 1.25, near);
  const DeviceCosts rested{1e12, 1e9, 0.25, 5e11, 4e12, 1.6e12};  // power limits it
  BOOST_TEST(seconds(rested, OpKind::gemm) == 1.25, near);
  BOOST_TEST(seconds(rested, OpKind::gemm, 0.5) == 0.25 + 1 / 1.6, near);
  BOOST_TEST(seconds(rested, OpKind::gemm, 0.1) == 0.25 + 1 / 1.6, near);
  BOOST_TEST(seconds(rested, OpKind::gemm, 0.75) == 0.25 + 1 / 1.3, near);
  BOOST_TEST(seconds(rested, OpKind::attention, 0.5) == 0.25 + 2 / 1.6, near);
  BOOST_TEST(seconds(rested, OpKind::fp8_gemm, 0.5) == 0.75, near);  // bytes come no faster
  const DeviceCosts alone{0, 1e9, 0.25, 0, 0, 1.6e14};  // of a rate that is told, not measured
  BOOST_TEST(seconds(alone, OpKind::gemm, 0.5) == seconds(alone, OpKind::gemm), near);
}

BOOST_AUTO_TEST_CASE(without_a_direct_way_a_copy_takes_the_slower_half_and_both_latencies) {
  Costs costs;
  costs.links[{"Card", "host"}] = {1e9, 0.25};
  costs.links[{"host", "Card"}] = {4e9, 0.5};
  const Prices prices(cards(), costs);
  BOOST_TEST(prices.transfer_seconds(1, 2, 1'000'000'000) == 1.75);
  BOOST_TEST(prices.transfer_seconds(1, kHostSide, 1'000'000'000) == 1.25);
  BOOST_TEST(prices.transfer_seconds(0, kHostSide, 1'000'000'000) == 0);
  BOOST_TEST(prices.transfer_seconds(1, 1, 1'000'000'000) == 0);
}

BOOST_AUTO_TEST_CASE(what_is_streamed_goes_by_pinned_memory_as_far_as_anybody_knows_it) {
  Topology topology = cards();
  topology.links.assign(16, {LinkFacts::Kind::through_host, 0, 0});
  topology.devices[1].pins = true;
  LinkFacts& reported = topology.links[3 * 4 + 1];
  const auto rates = [&](const Costs& costs) { return Prices(topology, costs).rates(1); };
  Costs costs;
  costs.links[{"host", "Card"}] = {4e9, 1e-3};  // of a file from before anybody measured both
  BOOST_TEST(rates(costs).from_pinned.bytes_per_second == 4e9);
  reported = {LinkFacts::Kind::direct, 2e10, 1e-6};
  BOOST_TEST(rates(costs).from_host.bytes_per_second == 4e9);
  BOOST_TEST(rates(costs).from_pinned.bytes_per_second == 2e10);
  BOOST_TEST(rates(costs).from_pinned.latency_seconds == 1e-3);
  reported.bytes_per_second = 1e9;  // less than was measured the slower way
  BOOST_TEST(rates(costs).from_pinned.bytes_per_second == 4e9);
  costs.links[{kPinnedHost, "Card"}] = {5e10, 2e-6};
  const Costs again = read_costs(write_costs(costs), "c.json");
  BOOST_TEST(rates(again).from_pinned.bytes_per_second == 5e10);
  BOOST_TEST(rates(again).from_pinned.latency_seconds == 2e-6);
  BOOST_TEST(rates(again).from_host.bytes_per_second == 4e9);
  topology.devices[1].pins = false;
  BOOST_TEST(rates(again).from_pinned.bytes_per_second == 0);
}

BOOST_AUTO_TEST_SUITE_END()
