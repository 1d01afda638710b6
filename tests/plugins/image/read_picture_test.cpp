// Picture files of every format against what Pillow reads (formats/goldens.txt, made by
// make_format_goldens.py), and files that are cut or lie.
#include "plugins/image/read_picture.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>

#include "tests/plugins/image/file_bytes.h"
#include "tests/plugins/image/refused.h"

namespace heddle::image {
BOOST_AUTO_TEST_SUITE(image_read_picture)

namespace {

using testing::refused;
using testing::says;
using Buffer = std::vector<std::uint8_t>;

const std::string kFormats = std::string(HEDDLE_TESTS_DIR) + "/plugins/image/formats/";

Buffer unpacked(const std::string& hex, std::size_t size) {
  Buffer packed, bytes(size);
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    packed.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  uLongf length = size;
  BOOST_REQUIRE(::uncompress(bytes.data(), &length, packed.data(), packed.size()) == Z_OK);
  BOOST_REQUIRE(length == size);
  return bytes;
}

// The formats whose libraries this build lacks are skipped.
bool is_built(const std::string& name) {
  const std::string end = name.substr(name.rfind('.') + 1);
  [[maybe_unused]] const auto is = [&](const char* other) { return end == other; };
#ifndef HEDDLE_WITH_JPEG
  if (is("jpg") || is("mpo")) return false;
#endif
#ifndef HEDDLE_WITH_WEBP
  if (is("webp")) return false;
#endif
#ifndef HEDDLE_WITH_GIF
  if (is("gif")) return false;
#endif
#ifndef HEDDLE_WITH_TIFF
  if (is("tif")) return false;
#endif
#ifndef HEDDLE_WITH_AVIF
  if (is("avif")) return false;
#endif
  return true;
}

struct Golden {
  std::string name, kind, rgb, alpha;
  std::size_t count = 0, width = 0, height = 0;
  int allowed = 0;
};

std::vector<Golden> goldens() {
  std::ifstream stream(kFormats + "goldens.txt");
  std::vector<Golden> all;
  Golden g;
  while (stream >> g.name >> g.count >> g.width >> g.height >> g.kind >> g.allowed >> g.rgb >>
         g.alpha)
    if (is_built(g.name)) all.push_back(g);
  return all;
}

// As LoadImage keeps them: those of the size of the first.
std::vector<Frame> frames_of(const std::string& name) {
  const Buffer file = testing::file_bytes(kFormats + name);
  std::vector<Frame> frames = read_pictures({file, name});
  const std::uint32_t width = frames[0].picture.width, height = frames[0].picture.height;
  std::erase_if(frames, [&](const Frame& frame) {
    return frame.picture.width != width || frame.picture.height != height;
  });
  return frames;
}

// Channels [first, end) of all pictures, one after another.
Buffer channels_of(const std::vector<Frame>& frames, std::uint32_t first, std::uint32_t end) {
  Buffer taken;
  for (const Frame& frame : frames)
    for (std::size_t i = 0; i < frame.picture.pixels.size(); i += frame.picture.channels)
      for (std::uint32_t c = first; c < end; ++c) taken.push_back(frame.picture.pixels[i + c]);
  return taken;
}

int greatest_difference(const Buffer& a, const Buffer& b) {
  BOOST_REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(int(a[i]) - int(b[i])));
  return most;
}

Error reading(const Buffer& file, std::uint64_t most_pixels = kMostPixels) {
  return refused([&] { read_pictures({file, "x", most_pixels}); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_format_is_read_as_pillow_reads_it) {
  const std::map<std::string, Alpha> kinds{{"none", Alpha::none},
                                           {"channel", Alpha::channel},
                                           {"palette", Alpha::palette},
                                           {"key", Alpha::colour_key}};
  const std::vector<Golden> all = goldens();
  for (const Golden& golden : all) {
    BOOST_TEST_CONTEXT(golden.name) {
      const std::vector<Frame> frames = frames_of(golden.name);
      BOOST_TEST((frames[0].alpha == kinds.at(golden.kind)));
      BOOST_TEST(frames.size() == golden.count);
      BOOST_TEST(frames[0].picture.width == golden.width);
      BOOST_TEST(frames[0].picture.height == golden.height);
      const std::size_t pixels = golden.count * golden.width * golden.height;
      if (channels_of(frames, 0, 1).size() != pixels) continue;  // told already
      const Buffer rgb = unpacked(golden.rgb, 3 * pixels);
      BOOST_TEST(greatest_difference(channels_of(frames, 0, 3), rgb) <= golden.allowed);
      if (golden.alpha == "-") continue;
      BOOST_REQUIRE(frames[0].picture.channels == 4u);
      const Buffer alpha = unpacked(golden.alpha, pixels);
      BOOST_TEST(greatest_difference(channels_of(frames, 3, 4), alpha) <= golden.allowed);
    }
  }
#if defined(HEDDLE_WITH_JPEG) && defined(HEDDLE_WITH_WEBP) && defined(HEDDLE_WITH_GIF) && \
    defined(HEDDLE_WITH_TIFF) && defined(HEDDLE_WITH_AVIF)
  BOOST_TEST(all.size() == 61u);
#endif
}

// Where the end holds nothing that a picture needs, Pillow reads it, too.
BOOST_AUTO_TEST_CASE(a_picture_cut_in_two_is_refused) {
  for (const Golden& golden : goldens()) {
    BOOST_TEST_CONTEXT(golden.name) {
      Buffer file = testing::file_bytes(kFormats + golden.name);
      // The first picture of several may be whole; without its palette, libtiff takes one as grey.
      const bool may_be_whole = golden.count > 1 || golden.name == "two_pictures.mpo";
      if (!may_be_whole && golden.name != "palette.tif") {
        file.resize(file.size() / 2);
        const Error error = reading(file);
        BOOST_TEST(error.code == HEDDLE_INVALID_ARGUMENT);
        BOOST_TEST(says(error, "x: "), error.what());
      }
      for (std::size_t size = 0; size < std::min<std::size_t>(file.size(), 200); size += 3) {
        const Buffer head(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
        try {
          read_pictures({head, "x"});
        } catch (const Error& error) {
          BOOST_TEST(error.code == HEDDLE_INVALID_ARGUMENT);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_picture_of_more_pixels_than_the_limit_is_refused) {
  for (const Golden& golden : goldens()) {
    BOOST_TEST_CONTEXT(golden.name) {
      const Error error = reading(testing::file_bytes(kFormats + golden.name), 32);
      BOOST_TEST(says(error, "more than the 32"), error.what());
      BOOST_TEST(says(error, "HEDDLE_MOST_PIXELS"), error.what());
    }
  }
}

// A header that claims 65,535 x 65,535 pixels.
BOOST_AUTO_TEST_CASE(a_header_that_claims_the_most_is_refused_before_memory_is_taken) {
  const auto claims = [](const char* name, std::initializer_list<std::size_t> at) {
    Buffer file = testing::file_bytes(kFormats + name);
    for (const std::size_t place : at) file.at(place) = 0xff;
    return reading(file);
  };
  BOOST_TEST(says(claims("rgb24.bmp", {18, 19, 22, 23}), "x: 65535 x 65535 pixels are more than"));
#ifdef HEDDLE_WITH_GIF
  BOOST_TEST(says(claims("plain.gif", {6, 7, 8, 9}), "x: 65535 x 65535 pixels are more than"));
#endif
#ifdef HEDDLE_WITH_JPEG
  Buffer file = testing::file_bytes(kFormats + "grey.jpg");
  for (std::size_t i = 0; i + 9 < file.size(); ++i)
    if (file[i] == 0xff && file[i + 1] == 0xc0) {  // the frame header: length, precision, sides
      std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(i) + 5, 4, std::uint8_t{0xf0});
      BOOST_TEST(says(reading(file), "x: 61680 x 61680 pixels are more than"));
      std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(i) + 5, 4, std::uint8_t{0x20});
      BOOST_TEST(says(reading(file), "cannot hold them"));
      break;
    }
#endif
}

BOOST_AUTO_TEST_CASE(what_is_no_picture_is_refused_with_what_is_one) {
  const Error error = reading({'%', 'P', 'D', 'F', '-', '1', '.', '7'});
  BOOST_TEST(error.code == HEDDLE_INVALID_ARGUMENT);
  BOOST_TEST(says(error, "x: this is no picture that is read here. Convert it to one of: PNG"));
  BOOST_TEST(says(error, "BMP"));
  BOOST_TEST(says(reading({}), "x: the file is empty"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::image
