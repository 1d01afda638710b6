// What is told before a run of sounds that MiniMax H3 is shown: their tokens, or nothing where one
// is no sound of two loudspeakers, which the run says.
#include <boost/test/unit_test.hpp>

#include "plugins/samplers/sound_references.h"

namespace {

using namespace heddle;
using namespace heddle::samplers;

std::optional<ReferenceTokenShapes> told_sounds(const std::vector<Shape>& samples) {
  blocks::EntryShapes entry;
  for (const Shape& shape : samples) entry.sounds.push_back(tensor_info(HEDDLE_F32, shape));
  return sound_reference_shapes(entry, {{1, 24, 7, 4, 6}, {1, 32, 2, 37}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sound_references)

BOOST_AUTO_TEST_CASE(both_loudspeakers_of_all_sounds_are_told_as_tokens) {
  const auto both = told_sounds({{1, 32, 2, 3}, {1, 32, 2, 40}});
  BOOST_TEST_REQUIRE(both.has_value());
  BOOST_TEST((both->tokens == Shape{1, 86, 32}));
  BOOST_TEST((both->positions == Shape{86, 3}));
}

BOOST_AUTO_TEST_CASE(of_what_is_no_sound_nothing_is_told) {
  for (const Shape& odd : {Shape{}, Shape{1, 32, 2}, Shape{2, 32, 2, 3}, Shape{1, 8, 2, 3},
                           Shape{1, 32, 1, 3}, Shape{1, 32, 2, 0}, Shape{1, 32, 2, 3, 1}})
    BOOST_TEST(!told_sounds({{1, 32, 2, 3}, odd}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
