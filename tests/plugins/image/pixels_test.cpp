// Between 0 ... 1 and bytes, JSON text as Python writes it, and names of input files.
#include "plugins/image/pixels.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <limits>

#include "plugins/image/json_text.h"
#include "plugins/image/picture_file.h"

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

BOOST_AUTO_TEST_CASE(json_is_written_as_python_writes_it) {
  std::ifstream file(std::string(HEDDLE_TESTS_DIR) + "/plugins/image/data/json.txt",
                     std::ios::binary);
  std::size_t from = 0, to = 0;
  int count = 0;
  while (file >> from >> to) {
    file.ignore();
    std::string text(from, ' '), expected(to, ' ');
    file.read(text.data(), static_cast<std::streamsize>(from));
    file.read(expected.data(), static_cast<std::streamsize>(to));
    BOOST_TEST(python_json(text) == expected);
    ++count;
  }
  BOOST_TEST(count == 7);
  BOOST_TEST(python_json("\"a\\/b\"") == "\"a/b\"");
  BOOST_TEST(python_json("\"\xff\xe4\xb8\"") == "\"\\ufffd\\ufffd\"");
}

BOOST_AUTO_TEST_CASE(text_becomes_a_json_string) {
  BOOST_TEST(json_string("a\"\\\n\x01\x7f") == "\"a\\\"\\\\\\n\\u0001\\u007f\"");
  BOOST_TEST(json_string("\xc3\xa9\xf0\x9f\x99\x82") == "\"\\u00e9\\ud83d\\ude42\"");
}

BOOST_AUTO_TEST_CASE(a_tag_behind_a_name_says_the_folder) {
  const auto parts = [](const char* name) {
    const FileName file = annotated(name);
    return file.folder + ":" + file.name;
  };
  BOOST_TEST(parts("cat.png") == "input:cat.png");
  BOOST_TEST(parts("sub/cat.png [output]") == "output:sub/cat.png");
  BOOST_TEST(parts("cat.png [temp]") == "temp:cat.png");
  BOOST_TEST(parts("cat.png [input]") == "input:cat.png");
  BOOST_TEST(parts("cat [other]") == "input:cat [other]");
  BOOST_TEST(parts("[temp]") == "temp:");
}

BOOST_AUTO_TEST_CASE(files_are_hashed_by_content) {
  // The published test vectors of FNV-1a.
  BOOST_TEST(content_hash({}) == 0xcbf29ce484222325u);
  BOOST_TEST(content_hash(Bytes{'a'}) == 0xaf63dc4c8601ec8cu);
  BOOST_TEST(content_hash(Bytes{'f', 'o', 'o', 'b', 'a', 'r'}) == 0x85944171f73967e8u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
