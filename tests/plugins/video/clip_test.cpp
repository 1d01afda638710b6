// A clip of 81 frames, as video models draw it, through every node that writes one: what is opened
// again, by FFmpeg's libraries or libwebp, has its frames in their order, its rate, its length and
// its workflow.
#include <cstdint>
#include <cstring>

#include "tests/plugins/video/video_fixture.h"

namespace heddle::video {
namespace {

using namespace heddle::video::testing;

constexpr int kFrames = 81, kDifferent = 3, kWidth = 64, kHeight = 48;
constexpr double kRate = 16;

struct ClipFixture : VideoFixture {
  // Three pictures of a file of data/, each of them 27 times in turn, as node "p".
  static std::string clip() {
    return R"("v": {"class_type": "LoadVideo", "inputs": {"file": "h264_stereo.mp4"}},
      "d": {"class_type": "GetVideoComponents", "inputs": {"video": ["v", 0]}},
      "s": {"class_type": "ImageScale", "inputs": {"image": ["d", 0], "upscale_method": "bilinear",
            "crop": "disabled", "width": 64, "height": 48}},
      "r": {"class_type": "RepeatImageBatch", "inputs": {"image": ["s", 0], "amount": 27}},
      "p": {"class_type": "ImageFromBatch", "inputs": {"image": ["r", 0], "batch_index": 0, "length": 81}})";
  }
  static std::string again(const std::string& name, const std::string& more = "") {
    return R"("w": {"class_type": "LoadVideo", "inputs": {"file": ")" + name + R"( [output]"}}, )" +
           more + R"("c": {"class_type": "GetVideoComponents", "inputs": {"video": [")" +
           (more.empty() ? "w" : "t") +
           R"(", 0]}}, "l": {"class_type": "test.look", "inputs": {"value": ["c", 0]}},
              "rate": {"class_type": "PreviewAny", "inputs": {"source": ["c", 2]}})";
  }
  // The part of a file from a time on, as node "t".
  static std::string from(const char* seconds) {
    return std::string(
               R"("t": {"class_type": "Video Slice", "inputs": {"video": ["w", 0], "start_time": )") +
           seconds + R"(, "duration": 0.0, "strict_duration": false}}, )";
  }
  // The clip's pictures, of which three differ.
  std::vector<float> given() {
    return run(clip() + R"(, "k": {"class_type": "test.look", "inputs": {"value": ["s", 0]}})",
               {"s.IMAGE"})
        .floats("s.IMAGE");
  }
  // Each frame is nearer to its own picture than to any other.
  static void compare_frames(const std::vector<float>& frames, const std::vector<float>& given) {
    const std::size_t one = std::size_t(kWidth) * kHeight * 3;
    BOOST_TEST_REQUIRE(frames.size() == kFrames * one);
    BOOST_TEST_REQUIRE(given.size() == kDifferent * one);
    for (int frame = 0; frame < kFrames; ++frame) {
      int nearest = -1;
      double least = INFINITY;
      for (int k = 0; k < kDifferent; ++k) {
        double sum = 0;
        for (std::size_t i = 0; i < one; ++i) {
          const double apart =
              double(frames[std::size_t(frame) * one + i]) - given[std::size_t(k) * one + i];
          sum += apart * apart;
        }
        if (sum < least) least = sum, nearest = k;
      }
      BOOST_TEST(nearest == frame % kDifferent, "frame " << frame << " is picture " << nearest);
      BOOST_TEST(10 * std::log10(double(one) / least) > 26, "frame " << frame);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_clips, ClipFixture)

BOOST_AUTO_TEST_CASE(eighty_one_frames_come_back_from_every_video_file) {
  const std::vector<float> pictures = given();
  struct Kind {
    const char *file, *node;
  };
  const Kind kinds[] = {
      {"one_00001_.mp4",
       R"("m": {"class_type": "CreateVideo", "inputs": {"images": ["p", 0], "fps": 16}},
          "o": {"class_type": "SaveVideo", "inputs": {"video": ["m", 0], "filename_prefix": "one", "format": "auto"}})"},
      {"two_00001_.mkv",
       R"("m": {"class_type": "CreateVideo", "inputs": {"images": ["p", 0], "fps": 16}},
          "o": {"class_type": "SaveVideo", "inputs": {"video": ["m", 0], "filename_prefix": "two", "format": "mkv"}})"},
      {"three_00001_.webm",
       R"("o": {"class_type": "SaveWEBM", "inputs": {"images": ["p", 0], "filename_prefix": "three",
                "codec": "vp9", "fps": 16.0, "crf": 12}})"},
  };
  for (const Kind& kind : kinds) {
    BOOST_TEST_CONTEXT(kind.file) {
      run(clip() + ", " + kind.node);
      BOOST_TEST(contains(bytes_of_file(folder / "out" / kind.file), "RepeatImageBatch"));
      const Results whole = run(again(kind.file), {"c.images"});
      BOOST_TEST(
          (whole.shape("c.images") == std::vector<std::int64_t>{kFrames, kHeight, kWidth, 3}));
      compare_frames(whole.floats("c.images"), pictures);
      BOOST_TEST(contains(whole.ui(), R"("text":["16.0"])"), whole.ui());
      // It is 81 / 16 seconds long: the last frame begins 5 seconds behind the first.
      BOOST_TEST(run(again(kind.file, from("5.0")), {"c.images"}).shape("c.images").at(0) == 1);
      const std::string behind = refusal(again(kind.file, from("5.0625")));
      BOOST_TEST(!behind.empty());
    }
  }
}

// FFmpeg before version 8 reads no animations of WebP: libwebp does, and the parts of the file tell
// how long each frame is shown.
BOOST_AUTO_TEST_CASE(eighty_one_frames_come_back_from_an_animated_webp) {
  run(clip() + R"(, "o": {"class_type": "SaveAnimatedWEBP", "inputs": {"images": ["p", 0],
      "filename_prefix": "four", "fps": 16.0, "lossless": false, "quality": 90, "method": "default"}})");
  const std::string bytes = bytes_of_file(folder / "out/four_00001_.webp");
  BOOST_TEST_REQUIRE(bytes.size() > 12);
  BOOST_TEST(contains(bytes, "RepeatImageBatch"));
  const auto number = [&](std::size_t at, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value |= std::uint32_t(std::uint8_t(bytes.at(at + i))) << (8 * i);
    return value;
  };
  int frames = 0;
  std::uint32_t shown = 0;  // milliseconds
  for (std::size_t at = 12; at + 8 <= bytes.size(); at += 8 + ((number(at + 4, 4) + 1) & ~1u)) {
    if (bytes.compare(at, 4, "ANMF") != 0) continue;
    ++frames;
    shown += number(at + 8 + 12, 3);
  }
  BOOST_TEST(frames == kFrames);
  BOOST_TEST(shown == std::uint32_t(kFrames * int(1000 / kRate)));
  const Results whole = run(
      R"("c": {"class_type": "LoadImage", "inputs": {"image": "four_00001_.webp [output]"}},
         "l": {"class_type": "test.look", "inputs": {"value": ["c", 0]}})",
      {"c.IMAGE"});
  compare_frames(whole.floats("c.IMAGE"), given());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::video
