// How strong hooks are, evaluation by evaluation, by their keyframes.
#include "plugins/samplers/hook_strengths.h"

#include <boost/test/unit_test.hpp>

namespace {

using heddle::blocks::HookKeyframe;
using heddle::blocks::WeightHook;
using heddle::samplers::HookStrengths;
using heddle::samplers::NoiseLevels;

// Its level at a part of the way is 1 - part.
const NoiseLevels& straight() {
  static const NoiseLevels levels = NoiseLevels::discrete_flow(1.0, 1.0);
  return levels;
}

WeightHook hook_with(std::vector<HookKeyframe> keyframes, const std::string& clock = "clock",
                     const std::string& id = "hook") {
  return {.id = id,
          .record = {},
          .strength_model = 2.0,
          .strength_clip = 1.0,
          .keyframes = std::move(keyframes),
          .clock = clock};
}

std::vector<double> strengths(const WeightHook& hook, const std::vector<double>& levels) {
  HookStrengths given(straight(), levels.front());
  std::vector<double> all;
  for (const double level : levels) all.push_back(given.strength_at(hook, level));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hook_strengths)

BOOST_AUTO_TEST_CASE(a_keyframe_holds_for_the_evaluations_that_it_is_guaranteed) {
  const std::vector<double> levels{1.0, 0.8, 0.6, 0.4, 0.2};
  BOOST_TEST(strengths(hook_with({{1.0, 0.0, 1}, {0.5, 0.1, 2}, {0.25, 0.3, 1}}), levels) ==
             (std::vector<double>{1.0, 0.5, 0.5, 0.25, 0.25}));
  // Without guarantees the last one that has begun counts, from its very level on.
  BOOST_TEST(strengths(hook_with({{1.0, 0.0, 0}, {0.5, 0.1, 0}, {0.25, 0.2, 0}}), levels) ==
             (std::vector<double>{1.0, 0.25, 0.25, 0.25, 0.25}));
  // Before the first keyframe that one counts already.
  BOOST_TEST(strengths(hook_with({{0.5, 0.7, 1}}), levels) == std::vector<double>(5, 0.5));
  BOOST_TEST(strengths(hook_with({}), levels) == std::vector<double>(5, 1.0));
}

BOOST_AUTO_TEST_CASE(keyframes_from_before_the_run_are_guaranteed_nothing) {
  const std::vector<HookKeyframe> keyframes{
      {1.0, 0.0, 1}, {0.5, 0.2, 1}, {0.25, 0.4, 1}, {0.125, 0.4, 1}};
  BOOST_TEST(strengths(hook_with(keyframes), {0.6, 0.3}) == (std::vector<double>{0.25, 0.125}));
}

BOOST_AUTO_TEST_CASE(hooks_of_one_clock_go_through_their_keyframes_together) {
  const std::vector<HookKeyframe> keyframes{{1.0, 0.0, 1}, {0.5, 0.0, 1}, {0.25, 0.0, 1}};
  HookStrengths given(straight(), 1.0);
  const WeightHook first = hook_with(keyframes), second = hook_with(keyframes, "clock", "second"),
                   apart = hook_with(keyframes, "another");
  BOOST_TEST(given.strength_at(first, 1.0) == 1.0);
  BOOST_TEST(given.strength_at(second, 1.0) == 1.0);  // the same evaluation
  BOOST_TEST(given.strength_at(first, 0.8) == 0.5);
  BOOST_TEST(given.strength_at(second, 0.6) == 0.25);
  BOOST_TEST(given.strength_at(apart, 0.6) == 1.0);
}

BOOST_AUTO_TEST_CASE(equal_changes_have_one_number_and_those_without_strength_none) {
  HookStrengths given(straight(), 1.0);
  const WeightHook hook = hook_with({{1.0, 0.0, 1}, {0.0, 0.3, 1}, {1.0, 0.6, 1}});
  const WeightHook other = hook_with({}, "", "other");
  const std::size_t one = given.weights_at({hook}, 1.0),
                    both = given.weights_at({hook, other}, 1.0);
  BOOST_TEST(one != 0u);
  BOOST_TEST(both != one);
  BOOST_TEST(given.weights_at({}, 1.0) == 0u);
  BOOST_TEST(given.weights_at({hook}, 0.5) == 0u);
  BOOST_TEST(given.weights_at({hook, other}, 0.5) == given.weights_at({other}, 0.5));
  BOOST_TEST(given.weights_at({hook}, 0.25) == one);
}

BOOST_AUTO_TEST_SUITE_END()
