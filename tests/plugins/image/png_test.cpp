// PNG against what Pillow reads (data/goldens.txt, made by make_goldens.py), and files that lie.
#include "plugins/image/png.h"

#include <boost/crc.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "plugins/image/orientation.h"
#include "tests/plugins/image/file_bytes.h"
#include "tests/plugins/image/refused.h"

namespace heddle::image {
BOOST_AUTO_TEST_SUITE(image_png)

namespace {

using heddle::image::Bytes;
using testing::refused;
using testing::says;

const std::string kData = std::string(HEDDLE_TESTS_DIR) + "/plugins/image/data/";

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Every n-th sample of each pixel from `first` on, `count` of them.
Bytes samples(const Picture& picture, std::uint32_t first, std::uint32_t count) {
  Bytes taken;
  for (std::size_t i = 0; i < picture.pixels.size(); i += picture.channels)
    for (std::uint32_t c = first; c < first + count; ++c) taken.push_back(picture.pixels[i + c]);
  return taken;
}

Bytes fixture(const std::string& name) {
  const auto file = testing::file_bytes(kData + name);
  return {file.begin(), file.end()};
}

void put_number(Bytes& file, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) file[at + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

// Makes the checksum of the chunk at `at` right again.
void mend(Bytes& file, std::size_t at) {
  std::uint32_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | file[at + i];
  boost::crc_32_type crc;
  crc.process_bytes(file.data() + at + 4, length + 4);
  put_number(file, at + 8 + length, crc.checksum());
}

constexpr std::size_t kHeaderChunk = 8, kWidth = 16, kHeight = 20, kDepth = 24;

Picture gradient(std::uint32_t width, std::uint32_t height, std::uint32_t channels) {
  Picture picture{width, height, channels, {}};
  for (std::size_t i = 0; i < std::size_t{width} * height * channels; ++i)
    picture.pixels.push_back(static_cast<std::uint8_t>(i * 7 + i / 31));
  return picture;
}

const std::function<bool()> kNever = [] { return false; };

// The chunks of a file: name, content.
std::vector<std::pair<std::string, std::string>> chunks(const Bytes& file) {
  std::vector<std::pair<std::string, std::string>> found;
  for (std::size_t at = 8; at + 12 <= file.size();) {
    std::size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | file[at + i];
    const auto* text = reinterpret_cast<const char*>(file.data());
    found.emplace_back(std::string(text + at + 4, 4), std::string(text + at + 8, length));
    at += 12 + length;
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_file_is_read_as_pillow_reads_it) {
  std::ifstream goldens(kData + "goldens.txt");
  const std::map<std::string, Alpha> kinds{{"none", Alpha::none},
                                           {"channel", Alpha::channel},
                                           {"palette", Alpha::palette},
                                           {"key", Alpha::colour_key}};
  std::string name, kind, rgb, alpha;
  std::uint32_t width = 0, height = 0;
  int count = 0;
  while (goldens >> name >> width >> height >> kind >> rgb >> alpha) {
    BOOST_TEST_CONTEXT(name) {
      PngContent content = read_png({fixture(name), name});
      BOOST_TEST((content.alpha == kinds.at(kind)));
      const Picture picture = upright(std::move(content.picture), exif_orientation(content.exif));
      BOOST_TEST(picture.width == width);
      BOOST_TEST(picture.height == height);
      BOOST_REQUIRE(picture.channels == (alpha == "-" ? 3u : 4u));
      BOOST_TEST(samples(picture, 0, 3) == from_hex(rgb), boost::test_tools::per_element());
      if (alpha != "-")
        BOOST_TEST(samples(picture, 3, 1) == from_hex(alpha), boost::test_tools::per_element());
    }
    ++count;
  }
  BOOST_TEST(count == 46);
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back) {
  for (const std::uint32_t channels : {1u, 2u, 3u, 4u}) {
    for (const int level : {0, 1, 4, 9}) {
      const Picture picture = gradient(67, 129, channels);
      const PngContent content = read_png({write_png(picture, {}, level, kNever), "x"});
      const std::uint32_t colours = channels < 3 ? 1 : 3;
      BOOST_TEST(samples(content.picture, 0, colours) == samples(picture, 0, colours));
      BOOST_TEST((content.alpha == Alpha::channel) == (channels % 2 == 0));
      if (channels % 2 == 0)
        BOOST_TEST(samples(content.picture, 3, 1) == samples(picture, channels - 1, 1));
    }
  }
}

BOOST_AUTO_TEST_CASE(text_chunks_stand_before_the_pixels) {
  const std::vector<TextChunk> texts{{"prompt", "{\"a\": 1}"},
                                     {"workflow", std::string(100000, 'x')}};
  const auto found = chunks(write_png(gradient(3, 3, 3), texts, 4, kNever));
  BOOST_REQUIRE(found.size() == 5);
  BOOST_TEST(found[0].first == "IHDR");
  BOOST_TEST(found[1].first == "tEXt");
  BOOST_TEST(found[1].second == std::string("prompt\0{\"a\": 1}", 15));
  BOOST_TEST(found[2].second == std::string("workflow\0", 9) + texts[1].text);
  BOOST_TEST(found[3].first == "IDAT");
  BOOST_TEST(found[4].first == "IEND");
}

BOOST_AUTO_TEST_CASE(keys_that_png_has_no_place_for_are_known) {
  BOOST_TEST(is_png_key("workflow"));
  BOOST_TEST(is_png_key(std::string(79, 'k')));
  for (const std::string& key : {std::string(), std::string(80, 'k'), std::string(" a"),
                                 std::string("a "), std::string("a  b"), std::string("\n")})
    BOOST_TEST(!is_png_key(key));
}

BOOST_AUTO_TEST_CASE(writing_stops_when_it_is_cancelled) {
  int asked = 0;
  const Error error =
      refused([&] { write_png(gradient(10, 1000, 3), {}, 4, [&] { return ++asked == 3; }); });
  BOOST_TEST(error.code == HEDDLE_CANCELLED);
  BOOST_TEST(asked == 3);
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_refused) {
  for (const char* name : {"colour3_depth4_alpha.png", "colour6_depth16_adam7.png"}) {
    const Bytes file = fixture(name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      const Error error = refused([&] { read_png({std::span(file).first(size), "cut.png"}); });
      BOOST_TEST(error.code == HEDDLE_INVALID_ARGUMENT);
      BOOST_TEST(says(error, "cut.png: "));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_checksum_is_refused) {
  Bytes file = fixture("colour2_depth8.png");
  const std::size_t end_of_pixels = file.size() - 12 - 5;  // IEND, and the checksum before it
  file[end_of_pixels] ^= 1;
  BOOST_TEST(refused([&] { read_png({file, "x"}); }).code == HEDDLE_INVALID_ARGUMENT);
  file[end_of_pixels] ^= 1;
  file[kWidth + 3] ^= 1;
  BOOST_TEST(says(refused([&] { read_png({file, "x"}); }), "CRC"));
}

BOOST_AUTO_TEST_CASE(a_picture_larger_than_pillow_allows_is_refused_by_its_numbers) {
  Bytes file = fixture("one_pixel.png");
  put_number(file, kWidth, 20000);
  put_number(file, kHeight, 20000);
  mend(file, kHeaderChunk);
  const Error error = refused([&] { read_png({file, "huge.png"}); });
  BOOST_TEST(says(error, "huge.png: 20000 x 20000 pixels"));
  BOOST_TEST(says(error, std::to_string(kMostPixels)));
}

BOOST_AUTO_TEST_CASE(a_small_file_that_says_it_is_large_takes_no_memory) {
  Bytes file = fixture("one_pixel.png");
  put_number(file, kWidth, 10000);
  put_number(file, kHeight, 10000);
  mend(file, kHeaderChunk);
  BOOST_TEST(says(refused([&] { read_png({file, "x"}); }), "cannot hold them"));
}

BOOST_AUTO_TEST_CASE(a_chunk_longer_than_its_file_takes_no_memory) {
  Bytes file = fixture("orientation6.png");
  put_number(file, kHeaderChunk + 25, 0x7a000000);  // the length of eXIf, behind the header
  BOOST_TEST(says(refused([&] { read_png({file, "x"}); }), "the file ends early"));
}

BOOST_AUTO_TEST_CASE(a_header_without_sense_is_refused) {
  const auto with = [](std::size_t at, std::uint8_t value) {
    Bytes file = fixture("one_pixel.png");
    file[at] = value;
    mend(file, kHeaderChunk);
    return refused([&] { read_png({file, "x"}); });
  };
  BOOST_TEST(with(kWidth + 3, 0).code == HEDDLE_INVALID_ARGUMENT);  // no pixels
  BOOST_TEST(with(kWidth, 0xff).code == HEDDLE_INVALID_ARGUMENT);   // a negative width
  BOOST_TEST(with(kDepth, 3).code == HEDDLE_INVALID_ARGUMENT);      // no such depth
  BOOST_TEST(with(kDepth + 1, 5).code == HEDDLE_INVALID_ARGUMENT);  // no such colour type
  BOOST_TEST(with(kDepth + 1, 3).code == HEDDLE_INVALID_ARGUMENT);  // a palette is missing
  BOOST_TEST(with(kDepth + 4, 7).code == HEDDLE_INVALID_ARGUMENT);  // no such interlacing
}

BOOST_AUTO_TEST_CASE(other_files_are_told_apart) {
  BOOST_TEST(says(refused([] { read_png({{}, "x"}); }), "x: the file is empty"));
  const Bytes jpeg{0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F'};
  BOOST_TEST(says(refused([&] { read_png({jpeg, "x.jpg"}); }), "x.jpg: this is no PNG file"));
}

BOOST_AUTO_TEST_CASE(exif_blocks_without_sense_mean_upright) {
  const Bytes good{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0};
  BOOST_TEST(exif_orientation(good) == 6);
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    BOOST_TEST(exif_orientation(std::span(good).first(size)) == 1);
  Bytes bad = good;
  bad[19] = 9;
  BOOST_TEST(exif_orientation(bad) == 1);
  bad = good;
  bad[4] = 0xff;  // a directory outside
  BOOST_TEST(exif_orientation(bad) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
