// What SAM3_TrackPreview draws, on canvases of a few pixels.
#include "plugins/video/track_drawing.h"

#include <cmath>
#include <string>

#include <boost/test/unit_test.hpp>

using namespace heddle::video;

namespace {

struct SmallCanvas {
  std::int64_t height, width;
  float ground;
  std::vector<float> pixels = std::vector<float>(std::size_t(3 * height * width), ground);

  Canvas canvas() { return {pixels.data(), height, width}; }
  Rgb at(std::int64_t y, std::int64_t x) const {
    const float* const from = pixels.data() + 3 * (y * width + x);
    return {from[0], from[1], from[2]};
  }
};

bool is_near(const Rgb& a, const Rgb& b) {
  constexpr float kNear = 1e-6f;
  return std::abs(a.red - b.red) < kNear && std::abs(a.green - b.green) < kNear &&
         std::abs(a.blue - b.blue) < kNear;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(track_drawing)

// Objects of one pixel have no number.
BOOST_AUTO_TEST_CASE(a_pixel_has_the_colour_of_the_first_object_there) {
  SmallCanvas small{2, 2, 0.5f};
  const std::vector<std::uint8_t> masks{1, 0, 0, 0, /* the second: */ 1, 0, 0, 0, 0, 0, 0, 1};
  draw_things(small.canvas(), masks, {}, 0.5f);
  BOOST_TEST(is_near(small.at(0, 0), {0.31f, 0.485f, 0.605f}));  // half of (0.12, 0.47, 0.71)
  BOOST_TEST(is_near(small.at(0, 1), {0.5f, 0.5f, 0.5f}));
  BOOST_TEST(is_near(small.at(1, 0), {0.5f, 0.5f, 0.5f}));
  BOOST_TEST(is_near(small.at(1, 1), {0.335f, 0.565f, 0.335f}));  // of (0.17, 0.63, 0.17)
}

BOOST_AUTO_TEST_CASE(a_number_stands_in_its_colour_with_black_around) {
  SmallCanvas small{7, 5, 1.0f};
  draw_number(small.canvas(), 1, 2, 3, {1, 0, 0}, 1);
  const char* const rows[] = {" ### ", "##1# ", "#11# ", "##1# ", "##1##", "#111#", "#####"};
  for (std::int64_t y = 0; y < small.height; ++y)
    for (std::int64_t x = 0; x < small.width; ++x) {
      const char wanted = rows[y][x];
      const Rgb colour = wanted == '1' ? Rgb{1, 0, 0} : wanted == '#' ? Rgb{0, 0, 0} : Rgb{1, 1, 1};
      BOOST_TEST(is_near(small.at(y, x), colour), y << ", " << x);
    }
}

// What does not fit is left out: of a 0 in squares of three pixels the hole's middle lies at (0,
// 0).
BOOST_AUTO_TEST_CASE(an_object_in_a_corner_is_drawn) {
  SmallCanvas small{2, 2, 1.0f};
  draw_things(small.canvas(), std::vector<std::uint8_t>{1, 1, 0, 0}, {0.5}, 1.0f);
  BOOST_TEST(is_near(small.at(0, 0), thing_colour(0)));
  BOOST_TEST(is_near(small.at(0, 1), {0, 0, 0}));  // around the digit
  BOOST_TEST(is_near(small.at(1, 0), {1, 1, 1}));
}

BOOST_AUTO_TEST_SUITE_END()
