// What is told before a run of pictures that MiniMax H3 is shown: their tokens, or nothing where
// one is no clip of the model's channels, which the run says.
#include <boost/test/unit_test.hpp>

#include "plugins/samplers/reference_input.h"

namespace {

using namespace heddle;
using namespace heddle::samplers;

std::optional<ReferenceTokenShapes> told(const std::vector<Shape>& samples) {
  const ReferenceLayout layout{.channels = 24, .patch = 2, .has_clips = true};
  blocks::EntryShapes entry;
  for (const Shape& shape : samples) entry.references.push_back(tensor_info(HEDDLE_F32, shape));
  return reference_shapes(entry, layout, 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clip_references)

BOOST_AUTO_TEST_CASE(clips_and_single_pictures_are_told_as_tokens) {
  const auto both = told({{1, 24, 3, 5, 8}, {1, 24, 4, 4}});
  BOOST_TEST_REQUIRE(both.has_value());
  const std::int64_t tokens = 3 * 3 * 4 + 2 * 2;
  BOOST_TEST((both->tokens == Shape{1, tokens, 24 * 4}));
  BOOST_TEST((both->positions == Shape{tokens, 3}));
}

BOOST_AUTO_TEST_CASE(of_what_is_no_clip_nothing_is_told) {
  const Shape clip{1, 24, 3, 5, 8};
  for (const Shape& odd :
       {Shape{}, Shape{24}, Shape{1, 24, 4}, Shape{2, 24, 3, 4, 4}, Shape{1, 16, 3, 4, 4},
        Shape{1, 24, 0, 4, 4}, Shape{1, 24, 4, 0}, Shape{1, 1, 24, 3, 4, 4}})
    BOOST_TEST(!told({clip, odd}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
