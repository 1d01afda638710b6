// A pause of a run, which another run shows to hold.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;

namespace {

// A chain over two devices, whose first node ends when it is told to.
struct PausedChain : TwoDevices {
  Meeting first_runs, first_may_end;
  engine::RunControl control;
  std::atomic<int> begun{0};  // behind the first
  Flow chain;
  engine::NodeIndex last;

  PausedChain() {
    last = chain.add("0", Place::first, {}, [this](heddle_ctx& ctx) {
      first_runs.arrive();
      first_may_end.wait_for(1);
      give_number(ctx, 0);
    });
    for (int i = 1; i < 50; ++i)
      last = chain.add(std::to_string(i), i % 2 == 0 ? Place::first : Place::second, {{{last, 0}}},
                       [this](heddle_ctx& ctx) {
                         ++begun;
                         give_number(ctx, number_of(ctx, 0) + 1);
                       });
  }

  // While it runs, which another run outlasts that comes and goes afterwards.
  void pause_behind_the_first_node() {
    first_runs.wait_for(1);
    control.pause();
    first_may_end.arrive();
    Flow other;
    engine::NodeIndex end = 0;
    for (int i = 0; i < 500; ++i) {
      const auto add = [i](heddle_ctx& ctx) {
        give_number(ctx, i == 0 ? 0 : number_of(ctx, 0) + 1);
      };
      const std::vector<TestInput> inputs =
          i == 0 ? std::vector<TestInput>{} : std::vector<TestInput>{{{end, 0}}};
      end = other.add("other " + std::to_string(i), i % 2 == 0 ? Place::first : Place::second,
                      inputs, add);
    }
    BOOST_TEST(engine::get_int(*run(other, {{end, 0}}).fetched.at({end, 0})) == 499);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(paused_runs, PausedChain)

// Another run of ten times its nodes begins and ends during the pause: whoever does not wait is
// long through by then.
BOOST_AUTO_TEST_CASE(a_paused_run_begins_nothing_until_it_is_resumed) {
  std::int64_t result = 0;
  std::jthread runner([&] {
    const engine::RunResult r =
        engine::execute(chain.request({{last, 0}}), environment, quiet, control);
    result = engine::get_int(*r.fetched.at({last, 0}));
  });
  pause_behind_the_first_node();
  BOOST_TEST(begun == 0);
  control.resume();
  runner.join();
  BOOST_TEST(result == 49);
  BOOST_TEST(begun == 49);
}

BOOST_AUTO_TEST_CASE(cancelling_ends_a_pause) {
  std::string failure;
  std::jthread runner([&] {
    failure = failure_of([&] {
      engine::execute(chain.request({{last, 0}}), environment, quiet, control);
    });
  });
  pause_behind_the_first_node();
  control.cancel();
  runner.join();
  BOOST_TEST(failure == "cancelled");
  BOOST_TEST(begun == 0);
}

BOOST_AUTO_TEST_SUITE_END()
