// Between 0 ... 1 and bytes.
#include "plugins/image/pixels.h"

#include <boost/test/unit_test.hpp>
#include <limits>

namespace heddle::image {
BOOST_AUTO_TEST_SUITE(image_pixels)

namespace {

using heddle::image::Bytes;

}  // namespace

BOOST_AUTO_TEST_CASE(values_are_truncated_and_clipped) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0.0f,  1.0f, 0.5f,      0.999f,     1.0f / 255.0f,
                                  -1.0f, 2.0f, kInfinity, -kInfinity, 0.00392f};
  const Quantised quantised = quantise(values);
  BOOST_TEST(quantised.samples == (Bytes{0, 255, 127, 254, 1, 0, 255, 255, 0, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(quantised.nan_count == 0u);
}

BOOST_AUTO_TEST_CASE(what_is_no_number_is_black_and_counted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Quantised quantised = quantise(std::vector<float>{nan, 1.0f, nan});
  BOOST_TEST(quantised.samples == (Bytes{0, 255, 0}), boost::test_tools::per_element());
  BOOST_TEST(quantised.nan_count == 2u);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_loaded_and_saved_stay_the_same) {
  Picture picture{256, 1, 3, {}};
  for (int i = 0; i < 256; ++i)
    picture.pixels.insert(picture.pixels.end(), 3, Bytes::value_type(i));
  std::vector<float> rgb(768);
  spread(picture, rgb, {});
  BOOST_TEST(quantise(rgb).samples == picture.pixels, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_mask_is_one_where_the_picture_is_transparent) {
  const Picture picture{2, 1, 4, {255, 0, 51, 0, 1, 2, 3, 255}};
  std::vector<float> rgb(6), mask(2);
  spread(picture, rgb, mask);
  BOOST_TEST(rgb == (std::vector<float>{1.0f, 0.0f, 0.2f, 1 / 255.0f, 2 / 255.0f, 3 / 255.0f}),
             boost::test_tools::per_element());
  BOOST_TEST(mask == (std::vector<float>{1.0f, 0.0f}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
