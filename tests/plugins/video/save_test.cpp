// Files that the nodes write: what they hold is what they were given, they carry the workflow, and
// the same run writes the same bytes.
#include "tests/plugins/video/video_fixture.h"

namespace heddle::video {
namespace {

using namespace heddle::video::testing;

struct SaveFixture : VideoFixture {
  // Six pictures of a file of data/, as they are and scaled to a size, as node "p".
  static std::string pictures(int width, int height) {
    return R"("v": {"class_type": "LoadVideo", "inputs": {"file": "h264_stereo.mp4"}},
      "d": {"class_type": "GetVideoComponents", "inputs": {"video": ["v", 0]}},
      "p": {"class_type": "ImageScale", "inputs": {"image": ["d", 0], "upscale_method": "bilinear",
            "crop": "disabled", "width": )" +
           std::to_string(width) + R"(, "height": )" + std::to_string(height) + "}}";
  }
  static std::string video(int width, int height, const std::string& more = "") {
    return pictures(width, height) +
           R"(, "m": {"class_type": "CreateVideo", "inputs": {"images": ["p", 0], "fps": 8, "audio": ["d", 1])" +
           more + "}}";
  }
  static std::string save(const std::string& format, const std::string& from = "m") {
    return R"(, "s": {"class_type": "SaveVideo", "inputs": {"video": [")" + from + R"(", 0], )" +
           format + "}}";
  }
  // Decodes what was saved as node "c", beside the pictures "p" that it was made of.
  Results reread(const std::string& name, const std::string& before) {
    return run(
        before + R"(, "w": {"class_type": "LoadVideo", "inputs": {"file": ")" + name +
            R"( [output]"}}, "c": {"class_type": "GetVideoComponents", "inputs": {"video": ["w", 0]}},
                 "l1": {"class_type": "test.look", "inputs": {"value": ["c", 0]}},
                 "l2": {"class_type": "test.look", "inputs": {"value": ["c", 1]}},
                 "l3": {"class_type": "test.look", "inputs": {"value": ["p", 0]}},
                 "l4": {"class_type": "PreviewAny", "inputs": {"source": ["c", 2]}},
                 "l5": {"class_type": "PreviewAny", "inputs": {"source": ["c", 3]}})",
        {"c.images", "c.audio", "p.IMAGE"});
  }
};

double psnr(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return 10 * std::log10(double(a.size()) / sum);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_saving, SaveFixture)

BOOST_AUTO_TEST_CASE(every_container_and_codec_gives_back_what_was_saved) {
  struct Kind {
    const char* format;
    const char* file;
    int width, height;
    const char* depth;
  };
  const Kind kinds[] = {
      {R"("format": "auto", "filename_prefix": "a/one")", "a/one_00001_.mp4", 64, 64, "8"},
      {R"("format": "mp4", "codec": "h264", "filename_prefix": "two")", "two_00001_.mp4", 24, 16,
       "8"},
      {R"("format": "mkv", "format.codec": "h264", "filename_prefix": "three",
          "format.codec.encoding": "re-encode", "format.codec.encoding.crf": 10)",
       "three_00001_.mkv", 24, 16, "8"},
      {R"("format": "webm", "format.codec": "auto", "filename_prefix": "four")", "four_00001_.webm",
       64, 64, "8"},
      {R"("format": "auto", "format.codec": "av1", "filename_prefix": "five")", "five_00001_.webm",
       24, 16, "8"},
      {R"("format": "mp4", "format.codec": "av1", "filename_prefix": "six")", "six_00001_.mp4", 70,
       66, "8"},
  };
  for (const Kind& kind : kinds) {
    BOOST_TEST_CONTEXT(kind.format) {
      const Results results = run(video(kind.width, kind.height) + save(kind.format));
      BOOST_TEST(fs::exists(folder / "out" / kind.file));
      const std::string ui = results.ui();
      BOOST_TEST(contains(ui, R"("filename":")" + fs::path(kind.file).filename().string()), ui);
      BOOST_TEST(contains(ui, R"("animated":[true])"), ui);
      const Results again = reread(kind.file, pictures(kind.width, kind.height));
      BOOST_TEST((again.shape("c.images") == again.shape("p.IMAGE")));
      BOOST_TEST(psnr(again.floats("c.images"), again.floats("p.IMAGE")) > 26);
      BOOST_TEST(contains(again.ui(), R"("text":["8.0"])"), again.ui());
      BOOST_TEST(contains(again.ui(), R"("text":[")" + std::string(kind.depth) + "\"]"),
                 again.ui());
      const auto sound = again.shape("c.audio", "waveform");
      BOOST_REQUIRE(sound.size() == 3u);
      BOOST_TEST(sound[1] == 2);
      BOOST_TEST(sound[2] > 16000);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_carries_the_workflow) {
  run(video(24, 16) + save(R"("format": "mp4", "filename_prefix": "one")"));
  run(video(24, 16) + save(R"("format": "mkv", "filename_prefix": "two")"));
  for (const char* name : {"one_00001_.mp4", "two_00001_.mkv"})
    BOOST_TEST(contains(bytes_of_file(folder / "out" / name), R"("class_type": "SaveVideo")"),
               name);
}

BOOST_AUTO_TEST_CASE(the_same_run_writes_the_same_bytes) {
  const std::vector<std::string> formats{R"("format": "mp4", "filename_prefix": "x")",
                                         R"("format": "webm", "filename_prefix": "x")"};
  for (const std::string& format : formats) {
    run(video(70, 66) + save(format));
    EngineOptions beside = options_of("beside");
    Engine other(beside);
    other.start(other.parse("{" + video(70, 66) + save(format) + "}"), {}).wait();
  }
  for (const char* name : {"x_00001_.mp4", "x_00001_.webm"})
    BOOST_TEST((bytes_of_file(folder / "out" / name) == bytes_of_file(folder / "beside" / name)),
               name);
}

BOOST_AUTO_TEST_CASE(streams_that_fit_are_taken_as_they_are) {
  run(R"("v": {"class_type": "LoadVideo", "inputs": {"file": "turned.mov"}})" +
      save(R"("format": "mp4", "filename_prefix": "copy")", "v"));
  const std::string bytes = bytes_of_file(folder / "out/copy_00001_.mp4");
  BOOST_TEST(contains(bytes, "a title"));  // which the file had
  const Results again = run(components("turned.mov", R"("w": {"class_type": "LoadVideo",
      "inputs": {"file": "copy_00001_.mp4 [output]"}}, "e": {"class_type": "GetVideoComponents",
      "inputs": {"video": ["w", 0]}}, "l": {"class_type": "test.look", "inputs": {"value": ["e", 0]}}, )"),
                            {"c.images", "e.images"});
  BOOST_TEST((again.floats("c.images") == again.floats("e.images")));
}

BOOST_AUTO_TEST_CASE(a_part_of_a_file_is_encoded_anew_with_its_times_and_its_turn) {
  const std::string part =
      R"("v": {"class_type": "LoadVideo", "inputs": {"file": "turned.mov"}},
         "p": {"class_type": "Video Slice", "inputs": {"video": ["v", 0], "start_time": 0.125}},
         "c": {"class_type": "GetVideoComponents", "inputs": {"video": ["p", 0]}})";
  run(part + save(R"("format": "mp4", "format.codec": "h264", "filename_prefix": "part")", "p"));
  const Results again = run(
      part + R"(, "w": {"class_type": "LoadVideo", "inputs": {"file": "part_00001_.mp4 [output]"}},
        "e": {"class_type": "GetVideoComponents", "inputs": {"video": ["w", 0]}},
        "l": {"class_type": "test.look", "inputs": {"value": ["e", 0]}},
        "m": {"class_type": "test.look", "inputs": {"value": ["c", 0]}},
        "n": {"class_type": "test.look", "inputs": {"value": ["e", 1]}})",
      {"c.images", "e.images", "e.audio"});
  BOOST_TEST((again.shape("c.images") == std::vector<std::int64_t>{2, 24, 16, 3}));
  BOOST_TEST((again.shape("e.images") == again.shape("c.images")));
  BOOST_TEST(psnr(again.floats("e.images"), again.floats("c.images")) > 26);
  const auto sound = again.shape("e.audio", "waveform");
  BOOST_TEST((sound[1] == 2 && sound[2] > 8000 && sound[2] < 14000));
}

BOOST_AUTO_TEST_CASE(ten_bits_and_wide_colours_are_kept) {
  run(video(64, 64, R"(, "bit_depth": 10, "color_space": "HDR PQ")") +
      save(R"("format": "mp4", "filename_prefix": "deep")"));
  const Results again = reread("deep_00001_.mp4", pictures(64, 64));
  BOOST_TEST(psnr(again.floats("c.images"), again.floats("p.IMAGE")) > 26);
  BOOST_TEST(contains(again.ui(), R"("text":["10"])"), again.ui());
}

BOOST_AUTO_TEST_CASE(webm_of_pictures_has_any_size_and_the_given_rate) {
  for (const char* codec : {"vp9", "av1"}) {
    const std::string name = std::string("w_") + codec;
    run(pictures(33, 21) + R"(, "s": {"class_type": "SaveWEBM", "inputs": {"images": ["p", 0],
        "filename_prefix": ")" +
        name + R"(", "codec": ")" + codec + R"(", "fps": 12.5, "crf": 12}})");
    const Results again = reread(name + "_00001_.webm", pictures(33, 21));
    BOOST_TEST((again.shape("c.images") == again.shape("p.IMAGE")));
    BOOST_TEST(psnr(again.floats("c.images"), again.floats("p.IMAGE")) > 26);
    BOOST_TEST(contains(again.ui(), R"("text":["12.5"])"), again.ui());
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_saved_is_refused_with_its_reason) {
  const std::string odd = refusal(video(33, 21) + save(R"("format": "mp4")"));
  BOOST_TEST(contains(odd, "H.264 has pictures of even sizes, these are 33 x 21"), odd);
  const std::string container = refusal(video(24, 16) + save(R"("format": "ogv")"));
  BOOST_TEST(contains(container, "format: 'ogv'"), container);
  const std::string pair =
      refusal(video(24, 16) + save(R"("format": "webm", "format.codec": "h264")"));
  BOOST_TEST(contains(pair, "WebM holds no H.264"), pair);
  const std::string crf = refusal(video(24, 16) + save(R"("format": "mp4", "format.codec": "h264",
      "format.codec.encoding": "re-encode", "format.codec.encoding.crf": 52)"));
  BOOST_TEST(contains(crf, "crf': 52 is above the greatest value 51"), crf);
  BOOST_TEST(saved().empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::video
