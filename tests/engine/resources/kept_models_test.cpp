// What is kept on a device, as its store of weights and admission know it: always the same.
#include "engine/resources/kept_models.h"

#include <atomic>
#include <barrier>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/run/wait_for_memory.h"
#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using engine::Hash128;

namespace {

// So that each of two threads is the later one now and then.
void delay(int turns) {
  for (std::atomic<int> turn = 0; turn < 40 * turns;) ++turn;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kept_models)

// One keeps a model while another releases it: whichever is last, both know it.
BOOST_AUTO_TEST_CASE(a_store_and_admission_know_the_same_whoever_comes_last) {
  constexpr int kRounds = 3000;
  const Hash128 model{1, 1}, other{2, 2};
  test::TwoDevices two;
  engine::Environment& environment = two.environment;
  environment.admission.set_memories(2, 3, [](std::uint32_t) { return std::uint64_t{100}; });
  std::barrier begin(2), end(2);
  std::jthread releases([&] {
    for (int i = 0; i < kRounds; ++i) {
      begin.arrive_and_wait();
      delay(i % 61);
      engine::release_model(model, 0, environment);
      end.arrive_and_wait();
    }
  });
  int kept = 0, wrong = 0;
  for (int i = 0; i < kRounds; ++i) {
    begin.arrive_and_wait();
    delay(i % 53);
    engine::keep_model(model, "flux", {{Hash128{9, 9}, 60}}, 0, environment);
    end.arrive_and_wait();
    const bool is_kept = !environment.devices[0].weights->release_kept().empty();
    const bool is_counted =
        environment.admission.keep(other, {"other", {{Hash128{8, 8}, 41}}}, {0}).has_value();
    kept += is_kept;
    wrong += is_kept != is_counted;
    environment.admission.forget(other, {0});
    environment.admission.forget(model, {0, 2});
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST_MESSAGE("kept in " << kept << " of " << kRounds << " rounds");
}

BOOST_AUTO_TEST_CASE(what_has_no_room_is_refused_with_its_figures_and_keeps_what_was) {
  const Hash128 model{1, 1};
  test::TwoDevices two;
  engine::Environment& environment = two.environment;
  environment.admission.set_memories(2, 3, [](std::uint32_t) { return std::uint64_t{100}; });
  engine::keep_model(model, "flux", {{Hash128{9, 9}, 60}}, 0, environment);
  const std::string refusal = test::failure_of([&] {
    engine::keep_model({2, 2}, "other", {{Hash128{8, 8}, 41}}, 0, environment);
  });
  for (const char* part : {"other does not stay on cpu:0", "it takes 41 B", "Let another model go"})
    BOOST_TEST(refusal.find(part) != std::string::npos, refusal);
  BOOST_TEST(environment.devices[0].weights->release_kept() == std::vector{model});
}

BOOST_AUTO_TEST_CASE(who_waits_is_told_what_is_pinned) {
  const auto name = [](std::uint32_t) { return std::string("cuda:0"); };
  engine::AdmissionQueue::Lack lack{0, 50, 100, 60, {}, {{"flux", 60}}, 0};
  BOOST_TEST(engine::describe(lack, name) ==
             "50 B on cuda:0, of which other programs leave 100 B, flux is pinned there and takes "
             "60 B");
  lack.holders = {{7, 30}};
  BOOST_TEST(engine::describe(lack, name) ==
             "50 B on cuda:0: 40 B of 100 B are free, run 7 holds 30 B, flux is pinned there and "
             "takes 60 B");
}

BOOST_AUTO_TEST_SUITE_END()
