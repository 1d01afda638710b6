#include "engine/run/comparison.h"

#include <boost/test/unit_test.hpp>

#include "engine/plugin/loader.h"

namespace heddle::engine {
namespace {

using Lines = std::vector<std::string>;

// A node 'loop' whose call of a model is planned to take 2 s, and 1 s of loading.
struct ComparisonFixture {
  LoadedPlugins plugins = load_plugins({HEDDLE_SAMPLE_PLUGINS_DIR});
  Graph graph;
  Plan plan;
  Costs measured;

  ComparisonFixture() {
    graph.nodes.resize(1);
    graph.nodes[0].id = "loop";
    graph.nodes[0].type = plugins.catalog->find("test.loop");
    plan.assignments.resize(1);
    PlacedCall call;
    call.seconds = 2;
    call.load_seconds = 1;
    plan.assignments[0].calls = {call};
    plan.seconds = 3;
    measured.devices["a"] = {1, 1, 1};
  }
  Lines compare(double node, double all, bool cached = false) const {
    const NodeTiming timing{0, node, cached};
    return prediction_against_fact(graph, plan, {&timing, 1}, all, measured);
  }
};

BOOST_FIXTURE_TEST_SUITE(comparison, ComparisonFixture)

BOOST_AUTO_TEST_CASE(nothing_is_said_within_a_fifth_with_the_weights_loaded_or_not) {
  for (const double seconds : {1.7, 2.0, 3.0, 3.5})
    BOOST_TEST(compare(seconds, 3).empty(), seconds);
}

BOOST_AUTO_TEST_CASE(what_differs_by_more_has_a_line_each) {
  BOOST_TEST(
      compare(4, 5) == (Lines{"loop test.loop: planned 2.00 s, and 1.00 s of loading, took 4.00 s",
                              "in all: planned 3.00 s, took 5.00 s"}),
      boost::test_tools::per_element());
  BOOST_TEST(compare(1.5, 3) ==
                 (Lines{"loop test.loop: planned 2.00 s, and 1.00 s of loading, took 1.50 s"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(short_stages_and_cached_ones_are_passed_over) {
  BOOST_TEST(compare(0, 0.01, true).empty());
  plan.assignments[0].calls[0].seconds = 0.01;
  plan.assignments[0].calls[0].load_seconds = 0;
  plan.seconds = 0;
  BOOST_TEST(compare(0.09, 9).empty());
  BOOST_TEST(compare(0.11, 9).size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_estimate_that_is_not_known_is_compared_with_nothing) {
  plan.assignments[0].calls.push_back({});
  BOOST_TEST(compare(9, 3).empty());
}

BOOST_AUTO_TEST_CASE(who_has_not_measured_is_advised_to) {
  measured.devices.clear();
  BOOST_TEST(compare(2, 3).empty());
  BOOST_TEST(compare(4, 3).back() ==
             "advice: measure this machine once with `heddle tune`, and plans go by its figures "
             "instead of guesses");
}

BOOST_AUTO_TEST_CASE(a_faster_way_without_room_is_told) {
  Alternative way;
  way.name = "sets over gpu:0, gpu:1";
  way.seconds = 1;
  way.fits = false;
  plan.assignments[0].calls[0].report.alternatives = {way};
  BOOST_TEST(compare(2, 3) == (Lines{"advice: loop test.loop would take about 1.00 s instead of "
                                     "2.00 s sets over gpu:0, gpu:1 if that had the memory"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
