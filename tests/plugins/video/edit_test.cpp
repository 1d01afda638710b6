// Nodes that cut videos by time, place and number of pictures; random ones as NumPy draws them.
#include "tests/plugins/video/video_fixture.h"

namespace heddle::video {
namespace {

using namespace heddle::video::testing;

struct EditFixture : VideoFixture {
  static constexpr std::size_t kPicture = 16 * 24 * 3;
  std::vector<float> all = read("many.mp4").floats("c.images");

  // The pictures of many.mp4, by their numbers, that a node leaves over.
  std::vector<std::size_t> left_over(const std::string& node) {
    const std::vector<float> some =
        read("many.mp4", R"("p": )" + node + ", ", "p").floats("c.images");
    std::vector<std::size_t> numbers;
    for (std::size_t at = 0; at < some.size(); at += kPicture)
      for (std::size_t i = 0; i < all.size() / kPicture; ++i)
        if (std::equal(all.begin() + std::ptrdiff_t(i * kPicture),
                       all.begin() + std::ptrdiff_t((i + 1) * kPicture),
                       some.begin() + std::ptrdiff_t(at))) {
          numbers.push_back(i);
          break;
        }
    return numbers;
  }
};

using Numbers = std::vector<std::size_t>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_edits, EditFixture)

BOOST_AUTO_TEST_CASE(pictures_are_chosen_by_their_numbers) {
  const auto node = [](const char* type, const char* inputs) {
    return R"({"class_type": ")" + std::string(type) + R"(", "inputs": {"video": ["v", 0], )" +
           inputs + "}}";
  };
  const auto sample = [&](const char* inputs) {
    return left_over(node("VideoFrameSample", inputs));
  };
  BOOST_TEST((left_over(node("VideoTemporalCrop", R"("start_frame": 5, "length": 3)")) ==
              Numbers{5, 6, 7}));
  BOOST_TEST((left_over(node("VideoTemporalCrop", R"("start_frame": 22, "length": 9)")) ==
              Numbers{22, 23}));
  BOOST_TEST((sample(R"("num_frames": 5, "strategy": "uniform", "seed": 0)") ==
              Numbers{0, 6, 12, 17, 23}));
  BOOST_TEST((sample(R"("num_frames": 1, "strategy": "uniform", "seed": 0)") == Numbers{12}));
  BOOST_TEST((sample(R"("num_frames": 3, "strategy": "head", "seed": 0)") == Numbers{0, 1, 2}));
  BOOST_TEST((sample(R"("num_frames": 3, "strategy": "tail", "seed": 0)") == Numbers{21, 22, 23}));
  // numpy.random.RandomState(7).choice(24, 5, replace=False), and .randint(0, 19).
  BOOST_TEST(
      (sample(R"("num_frames": 5, "strategy": "random", "seed": 7)") == Numbers{1, 2, 5, 11, 13}));
  BOOST_TEST((left_over(node("VideoRandomTemporalCrop", R"("length": 6, "seed": 7)")) ==
              Numbers{15, 16, 17, 18, 19, 20}));
  BOOST_TEST((left_over(node("VideoRandomTemporalCrop", R"("length": 6, "seed": 12345)")) ==
              Numbers{2, 3, 4, 5, 6, 7}));
}

BOOST_AUTO_TEST_CASE(edits_of_the_interface_are_shown) {
  const std::string from =
      R"("v": {"class_type": "LoadVideo", "inputs": {"file": "many.mp4"}},
         "d": {"class_type": "GetVideoComponents", "inputs": {"video": ["v", 0]}},
         "m": {"class_type": "CreateVideo", "inputs": {"images": ["d", 0], "fps": 8}},
         "t": {"class_type": "VideoTrim", "inputs": {"video": ["m", 0], "trim": {"trim": {"start_time": 1, "duration": 0.5}}}},
         "x": {"class_type": "VideoCrop", "inputs": {"video": ["t", 0], "crop": {"crop": {"x": 3, "y": 1, "width": 7, "height": 5}}}},
         "c": {"class_type": "GetVideoComponents", "inputs": {"video": ["x", 0]}},
         "look": {"class_type": "test.look", "inputs": {"value": ["c", 0]}})";
  const Results results = run(from, {"c.images"});
  BOOST_REQUIRE((results.shape("c.images") == std::vector<std::int64_t>{4, 5, 7, 3}));
  const std::vector<float> part = results.floats("c.images");
  for (std::size_t i = 0; i < 4; ++i)
    BOOST_TEST(part[i * 5 * 7 * 3] == all[(8 + i) * kPicture + (1 * 24 + 3) * 3]);
  BOOST_TEST(contains(results.ui(), "ComfyUI_temp_video_00001_.mp4"));
  BOOST_TEST(contains(results.ui(), "ComfyUI_temp_video_00002_.mp4"));
  BOOST_TEST(contains(refusal(R"("v": {"class_type": "LoadVideo", "inputs": {"file": "many.mp4"}},
      "t": {"class_type": "VideoTrim", "inputs": {"video": ["v", 0], "trim": {"trim": {"duration": -1}}}})"),
                      "is below 0"));
}

BOOST_AUTO_TEST_CASE(videos_are_put_one_after_another) {
  const auto joined = [](const std::string& more) {
    return R"("w": {"class_type": "VideoTemporalCrop",
                    "inputs": {"video": ["v", 0], "start_frame": 20, "length": 2}},
              "both": {"class_type": "CreateList", "inputs": {"inputs.input0": ["w", 0], "inputs.input1": ["w", 0]}},
              "j": {"class_type": "ConcatenateVideo",
                    "inputs": {"videos.video0": ["both", 0], "videos.video1": ["v", 0])" +
           more + "}}, ";
  };
  std::vector<float> expected;
  for (int i = 0; i < 2; ++i)
    expected.insert(expected.end(), all.begin() + 20 * kPicture, all.begin() + 22 * kPicture);
  expected.insert(expected.end(), all.begin(), all.end());
  BOOST_TEST(
      (read("many.mp4", joined(R"(, "codec": "auto")"), "j").floats("c.images") == expected));
  // Encoded by this node; lossy.
  const std::vector<float> coded =
      read("many.mp4", joined(R"(, "codec": "h264")"), "j").floats("c.images");
  BOOST_REQUIRE(coded.size() == expected.size());
  double sum = 0;
  for (std::size_t i = 0; i < coded.size(); ++i) sum += std::fabs(coded[i] - expected[i]);
  BOOST_TEST(sum / double(coded.size()) < 0.05);
  BOOST_TEST(coded != expected);
}

BOOST_AUTO_TEST_CASE(other_sound_takes_the_place_of_that_of_all_videos) {
  const std::string nodes =
      R"("v": {"class_type": "LoadVideo", "inputs": {"file": "many.mp4"}},
         "s": {"class_type": "EmptyAudio", "inputs": {"duration": 60, "sample_rate": 1000, "channels": 1}},
         "j": {"class_type": "ConcatenateVideo", "inputs": {"videos.video0": ["v", 0],
               "videos.video1": ["v", 0], "codec": "auto", "complete_audio": ["s", 0]}},
         "c": {"class_type": "GetVideoComponents", "inputs": {"video": ["j", 0]}},
         "look": {"class_type": "test.look", "inputs": {"value": ["c", 1]}})";
  // As long as the pictures: 48 of 8 in a second.
  BOOST_TEST((run(nodes, {"c.audio"}).shape("c.audio", "waveform") ==
              std::vector<std::int64_t>{1, 1, 6000}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::video
