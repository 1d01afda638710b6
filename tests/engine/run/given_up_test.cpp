// Work that a cancelled run has enqueued: what has not begun is left out, nobody else's is, and
// what was to be made of it is found by nobody.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/resources/run_work.h"
#include "heddle/device.hpp"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"
#include "tests/support/stride.h"

using namespace heddle;
using engine::RunControl;
using engine::RunWork;

BOOST_AUTO_TEST_SUITE(given_up)

namespace {

// Devices that do nothing before somebody waits for it: a call is enqueued whole before it begins.
struct Late {
  const test::FakeControl control;
  test::LayersModel layers{{"fake:0", "fake:1"}, R"({"shuffle": 3})"};

  // Two loops, one after another; "first" and "second" give what they made.
  std::string flow(int steps) const {
    const auto loop = [&](const std::string& x) {
      return R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": [")" + x +
             R"(", 0], "steps": )" + std::to_string(steps) + R"(, "sets": 1}})";
    };
    const std::string load =
        R"({"class_type": "test.load", "inputs": {"path": ")" + layers.path + R"("}})";
    const std::string ramp = R"({"class_type": "test.ramp", "inputs": {"count": )" +
                             std::to_string(layers.width) + R"(, "items": 4}})";
    return test::workflow(
        {{"load", load.c_str()},
         {"x", ramp.c_str()},
         {"first", loop("x").c_str()},
         {"second", loop("first").c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["second", 0]}})"}});
  }
  // Nothing: it was cancelled.
  std::vector<std::byte> start(const std::string& flow, const std::string& id, RunControl& run) {
    try {
      return layers.runs.start(flow, id, run);
    } catch (const engine::Error& error) {
      BOOST_TEST((error.code() == engine::Code::cancelled), error.full());
      return {};
    }
  }
  std::vector<std::byte> start(const std::string& flow, const std::string& id) {
    RunControl run;
    return start(flow, id, run);
  }
  void forget() { layers.runs.environment().cache.clear(); }
};

void cancel_run(void* run) { static_cast<RunControl*>(run)->cancel(); }

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_call_that_is_cancelled_at_any_launch_stops_behind_it, Late) {
  const std::string one = flow(1), two = flow(2);
  const std::vector<std::byte> good = start(one, "first"), other = start(two, "first");
  forget();
  const std::uint64_t before = control->launches_run(0);
  BOOST_TEST((start(one, "first") == good));
  const std::uint64_t all = control->launches_run(0) - before;
  BOOST_TEST_REQUIRE(all > std::uint64_t(layers.layers));
  for (std::uint64_t nth = 1; nth <= all; ++nth) {
    BOOST_TEST_INFO("cancelled at launch " << nth << " of " << all);
    forget();
    RunControl run;
    control->call_at_launch(0, nth, cancel_run, &run);
    const std::uint64_t run_before = control->launches_run(0);
    // Behind the last one there is nothing to leave out.
    BOOST_TEST((start(one, "first", run) == (nth < all ? std::vector<std::byte>() : good)));
    BOOST_TEST(control->launches_run(0) - run_before == nth);
    // What was left out is not found; the device is as it was, for the same and for others.
    BOOST_TEST((start(one, "first") == good));
    BOOST_TEST((start(two, "first") == other));
  }
  BOOST_TEST(control->freed_in_use(0) == 0u);
  for (const auto& device : layers.runs.environment().devices)
    BOOST_TEST(device.health->report().failures == 0u);
}

// Nothing of the first loop has run when the second one's is begun: a run that takes it from the
// cache comes before, or after, the one that makes it is cancelled.
BOOST_FIXTURE_TEST_CASE(what_another_run_has_taken_from_the_cache_is_made, Late) {
  const std::string both = flow(1);
  const std::vector<std::byte> first = start(both, "first"), second = start(both, "second");
  struct Taking final : engine::Observer {
    std::function<void()> taken;
    void node_cached(const engine::Node& node) override {
      if (node.id == "first") taken();
    }
  };
  for (const bool takes_before : {true, false}) {
    forget();
    RunControl maker;
    std::vector<std::byte> got;
    int reported = 0, found = 0;
    layers.runs.on_progress = [&] {
      if (++reported != 2) return;  // of the second loop
      if (!takes_before) maker.cancel();
      RunControl taker;
      Taking observer;
      observer.taken = [&] {
        ++found;
        maker.cancel();
      };
      got = layers.runs.start(both, "first", taker, observer);
    };
    BOOST_TEST(start(both, "second", maker).empty());
    layers.runs.on_progress = nullptr;
    BOOST_TEST(found == (takes_before ? 1 : 0));
    BOOST_TEST((got == first));
    BOOST_TEST((start(both, "second") == second));
  }
}

BOOST_AUTO_TEST_CASE(work_that_somebody_holds_is_not_given_up_and_what_comes_later_is) {
  RunWork work;
  engine::CancelFlagRef early, late;
  BOOST_TEST(work.mark() == 0u);
  work.renew(early, 1);
  const engine::CancelFlagRef same = early;
  work.renew(early, 1);
  BOOST_TEST((early == same));  // nobody holds it: one flag for all launches of a node
  const std::uint64_t mark = work.mark();
  BOOST_TEST(work.hold(mark));
  work.renew(early, 1);
  BOOST_TEST((early != same));
  work.renew(late, 2);
  work.give_up();
  BOOST_TEST(!same->is_set());
  BOOST_TEST(early->is_set());
  BOOST_TEST(late->is_set());
  BOOST_TEST(!work.hold(mark));
  engine::CancelFlagRef after;
  work.renew(after, 3);
  BOOST_TEST(after->is_set());
}

BOOST_AUTO_TEST_CASE(a_run_that_is_over_has_nothing_to_give_up) {
  RunWork work;
  engine::CancelFlagRef flag;
  work.renew(flag, 1);
  const std::uint64_t mark = work.mark();
  BOOST_TEST(work.finish());
  work.give_up();
  BOOST_TEST(!flag->is_set());
  BOOST_TEST(work.hold(mark));
}

BOOST_AUTO_TEST_CASE(a_run_is_not_over_when_something_of_it_was_left_out) {
  RunWork work;
  engine::CancelFlagRef kept, lost;
  work.renew(kept, 4);
  work.renew(lost, 5);
  work.give_up();
  device::Cancel(lost.get()).pass_over();
  BOOST_TEST(!work.finish());
  BOOST_TEST(work.lost() == std::vector<engine::NodeIndex>{5}, boost::test_tools::per_element());
  work.forget();
  BOOST_TEST(work.hold(1));  // that one is there
}

BOOST_AUTO_TEST_SUITE_END()
