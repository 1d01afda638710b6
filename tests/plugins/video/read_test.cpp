// Files of other encoders as pictures and sound, against what PyAV decodes of them, as ComfyUI
// does (make_goldens.py), and files that are damaged or lie.
#include "tests/plugins/video/video_fixture.h"

namespace heddle::video {
namespace {

using namespace heddle::video::testing;

constexpr double kTolerance = 1e-6;

struct ReadFixture : VideoFixture {
  heddle::test::TensorFile goldens{kTests / "goldens.safetensors"};

  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / "in" / name, std::ios::binary) << bytes;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_reading, ReadFixture)

BOOST_AUTO_TEST_CASE(pictures_are_those_that_pyav_decodes) {
  for (const char* name :
       {"h264_stereo.mp4", "h264_bt709.mp4", "h264_full_range.mp4", "h264_10bit.mp4",
        "vp9_odd.webm", "vp9_alpha.webm", "uneven_times.mkv", "turned.mov"}) {
    BOOST_TEST_CONTEXT(name) {
      const Results results = read(name);
      BOOST_TEST((results.shape("c.images") == goldens.at(name).shape));
      const double difference =
          greatest_difference(results.floats("c.images"), goldens.floats(name));
      BOOST_TEST(difference <= kTolerance);
    }
  }
}

BOOST_AUTO_TEST_CASE(sound_comes_with_a_video) {
  const Results results = run(components("h264_stereo.mp4"), {"c.audio", "c.fps"});
  const auto shape = results.shape("c.audio", "waveform");
  BOOST_REQUIRE(shape.size() == 3u);
  BOOST_TEST((shape[0] == 1 && shape[1] == 2 && shape[2] > 16000));
  const std::vector<float> all = results.floats("c.audio", "waveform");
  const std::vector<float> golden = goldens.floats("h264_stereo.mp4.sound");
  std::vector<float> begin(all.begin(), all.begin() + 256);
  begin.insert(begin.end(), all.begin() + shape[2], all.begin() + shape[2] + 256);
  BOOST_TEST(greatest_difference(begin, golden) <= 1e-6);
}

BOOST_AUTO_TEST_CASE(a_part_in_time_has_the_pictures_that_begin_in_it) {
  const std::string part =
      R"("p": {"class_type": "Video Slice", "inputs": {"video": ["v", 0], "start_time": START,
      "duration": 0.375}}, )";
  for (const char* start : {"0.875", "-2.125"}) {
    std::string more = part;
    more.replace(more.find("START"), 5, start);
    const Results results = read("many.mp4", more, "p");
    BOOST_TEST((results.shape("c.images") == std::vector<std::int64_t>{3, 16, 24, 3}));
    BOOST_TEST(greatest_difference(results.floats("c.images"), goldens.floats("many.mp4")) <=
               kTolerance);
  }
  const auto slice = [&](const char* times) {
    return refusal(
        components("many.mp4",
                   R"("p": {"class_type": "Video Slice", "inputs": {"video": ["v", 0], )" +
                       std::string(times) + "}}, ",
                   "p"));
  };
  BOOST_TEST(contains(slice(R"("start_time": 3.5, "duration": 0)"), "cannot be cut"));
  BOOST_TEST(contains(slice(R"("start_time": 2, "duration": 9, "strict_duration": true)"),
                      "the video of 3.0"));
  BOOST_TEST(slice(R"("start_time": 2, "duration": 9)") == "");
}

BOOST_AUTO_TEST_CASE(an_edit_cuts_what_is_loaded) {
  const auto loaded = [&](const std::string& edit) {
    return run(R"("v": {"class_type": "LoadVideo", "inputs": {"file": "many.mp4", "edit": )" +
                   edit +
                   R"(}}, "c": {"class_type": "GetVideoComponents", "inputs": {"video": ["v", 0]}},
                   "look": {"class_type": "test.look", "inputs": {"value": ["c", 0]}})",
               {"c.images"});
  };
  const Results whole = loaded("{}");
  const Results part = loaded(
      R"({"trim": {"start_time": 1, "duration": 0.25}, "crop": {"x": 4, "y": 2, "width": 10, "height": 6}})");
  BOOST_TEST((part.shape("c.images") == std::vector<std::int64_t>{2, 6, 10, 3}));
  const std::vector<float> all = whole.floats("c.images"), cut = part.floats("c.images");
  double most = 0;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t y = 0; y < 6; ++y)
      for (std::size_t x = 0; x < 30; ++x)
        most = std::max(most, std::fabs(double(cut[(i * 6 + y) * 30 + x]) -
                                        double(all[((i + 8) * 16 + y + 2) * 72 + 12 + x])));
  BOOST_TEST(most == 0);
  BOOST_TEST(contains(whole.ui(), R"("filename":"many.mp4")"));
  BOOST_TEST(contains(part.ui(), "ComfyUI_temp_video_00001_.mp4"));
}

BOOST_AUTO_TEST_CASE(what_is_no_video_is_refused_with_its_name) {
  put("empty.mp4", "");
  put("text.mp4", "this is a text and no video at all, whatever its name says");
  put("list.m3u8", "#EXTM3U\n#EXTINF:1,\nmany.mp4\n");
  for (const auto& [name, reason] : std::initializer_list<std::pair<std::string, std::string>>{
           {"empty.mp4", "the file is empty"},
           {"text.mp4", "cannot be read"},
           {"list.m3u8", "cannot be read"},
           {"mono_8k.wav", "there is no video in this file"}}) {
    const std::string refused = refusal(components(name));
    BOOST_TEST(contains(refused, name + ": "), refused);
    BOOST_TEST(contains(refused, reason), refused);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_early_gives_what_is_whole_or_says_so) {
  const std::string webm = bytes_of_file(kTests / "data/uneven_times.mkv");
  put("half.mkv", webm.substr(0, webm.size() * 6 / 10));
  const Results half = read("half.mkv");
  const std::vector<float> golden = goldens.floats("uneven_times.mkv");
  const auto count = half.shape("c.images")[0];
  BOOST_TEST((count >= 1 && count < 4));
  const std::vector<float> begin(golden.begin(), golden.begin() + count * 16 * 24 * 3);
  BOOST_TEST(greatest_difference(half.floats("c.images"), begin) <= kTolerance);
  const std::string mp4 = bytes_of_file(kTests / "data/many.mp4");
  put("half.mp4", mp4.substr(0, mp4.size() / 2));  // its index is at the end
  BOOST_TEST(contains(refusal(components("half.mp4")), "ends early"));
  put("head.mkv", webm.substr(0, 700));
  BOOST_TEST(contains(refusal(components("head.mkv")), "head.mkv: "));
}

// The size stands in two places of an MP4 file: that of the sample entry is what decoders are told.
BOOST_AUTO_TEST_CASE(pictures_beyond_the_limit_are_refused_before_they_are_made) {
  std::string mp4 = bytes_of_file(kTests / "data/many.mp4");
  const std::size_t entry = mp4.find("avc1", mp4.find("stsd"));
  BOOST_REQUIRE(entry != std::string::npos);
  const std::size_t size = entry + 4 + 24;
  mp4.replace(size, 4, "\xff\xff\xff\xff");
  put("lying.mp4", mp4);
  ::setenv("HEDDLE_MOST_PIXELS", "300", 1);
  const std::string refused = refusal(components("many.mp4"));
  ::unsetenv("HEDDLE_MOST_PIXELS");
  BOOST_TEST(contains(refused, "24 x 16 pixels"), refused);
  BOOST_TEST(contains(refused, "HEDDLE_MOST_PIXELS"), refused);
  BOOST_TEST(contains(refused, "many.mp4: "), refused);
  // The decoder finds out the true size, which is read.
  const std::string lie = refusal(components("lying.mp4"));
  BOOST_TEST((lie == "" || contains(lie, "65535 x 65535 pixels")), lie);
}

// A few bytes of each file are others; what comes of it is the same each time.
BOOST_AUTO_TEST_CASE(damaged_bytes_give_pictures_or_an_error_with_the_name) {
  ::setenv("HEDDLE_MOST_PIXELS", "4096", 1);
  std::size_t turns = 0;
  for (const char* name : {"many.mp4", "vp9_alpha.webm", "uneven_times.mkv", "turned.mov"}) {
    const std::string whole = bytes_of_file(kTests / "data" / name);
    for (std::size_t turn = 0; turn < 20; ++turn, ++turns) {
      std::string bytes = whole;
      for (std::size_t i = 0; i < 3; ++i)
        bytes[(turn * 7919 + i * 40503 + turn * turn * 31) % bytes.size()] =
            static_cast<char>(turn * 37 + i * 91);
      put("broken.bin", bytes);
      const std::string said = refusal(components("broken.bin"));
      BOOST_TEST((said.empty() || contains(said, "broken.bin: ")), name << ": " << said);
    }
  }
  ::unsetenv("HEDDLE_MOST_PIXELS");
  BOOST_TEST(turns == 80u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::video
