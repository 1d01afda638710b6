// WanDancer's nodes, and what it draws of them, against PyTorch
// (../goldens/make_wan_dancer_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr int kDanceFrames = 13;

struct WanDancerNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_dancer/expected.safetensors";
  TensorFile expected{golden};

  WanDancerNodes() {
    add("diffusion_models/dancer_flow", seeded_model("flow", true, "wan_dancer"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  std::string given(const char* as, const char* type, const char* name,
                    const char* more = "") const {
    return node_of(as, type,
                   cat(R"("path": ")", golden.string(), R"(", "name": ")", name, "\"", more));
  }
  // A part of the film, and what is measured of its music or of all of it.
  static std::string part(int number) {
    return node_of("part", "WanDancerPadKeyframes",
                   cat(R"("images": ["pictures", 0], "audio": ["tune", 0], "segment_length": )",
                       kDanceFrames, R"(, "segment_index": )", number));
  }
  static std::string measured(const std::string& sound, double scale) {
    return node_of("heard", "WanDancerEncodeAudio",
                   cat(R"("audio": )", sound, R"(, "video_frames": )", kDanceFrames,
                       R"(, "audio_inject_scale": )", scale));
  }
  std::string nodes(const std::string& model) const {
    return cat(loaded("dancer_" + model), R"(, "one": )", text("one", golden), R"(, "two": )",
               text("two", golden), given("pictures", "test.image", "pictures"),
               given("first", "test.image", "first"), given("seen", "test.seen", "seen"),
               given("kept", "test.seen", "kept"),
               given("tune", "test.sound", "tune", R"(, "rate": 8000)"),
               node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"));
  }
  static std::string dancing(const std::string& more, int side = 64) {
    return node_of(
        "node", "WanDancerVideo",
        cat(R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0], "width": )", side,
            R"(, "height": 64, "length": )", kDanceFrames, more));
  }
  static constexpr const char* kSeen =
      R"(, "clip_vision_output": ["seen", 0], "clip_vision_output_ref": ["kept", 0])";
  static constexpr const char* kHeard = R"(, "audio_encoder_output": ["heard", 0])";
  static std::string apart() {
    return measured(R"(["tune", 0])", 0.8) +
           dancing(cat(R"(, "start_image": ["first", 0])", kSeen, kHeard));
  }
  static std::string film() {
    return part(2) + measured(R"(["part", 2])", 1) +
           dancing(cat(R"(, "start_image": ["part", 0], "mask": ["part", 1])", kSeen, kHeard));
  }

  std::string drawn(const std::string& model, const std::string& node,
                    const std::string& hints = "") const {
    return cat("{", nodes(model), node,
               R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
                "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive":
                ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2], "denoise": 1.0})",
               hints, "}, ", kLook, "}");
  }
  void compare(const std::vector<float>& made, const std::string& name,
               double tolerance = kTolerance) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < tolerance, name << ": relative error " << error);
  }
  std::vector<float> latent_of(const std::string& flow) {
    return run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
  }
  heddle::Results looked(const std::string& more, const char* link, const char* output) {
    return run_whole(
        cat("{", nodes("flow"), more,
            R"(, "look": {"class_type": "test.look", "inputs": {"value": )", link, "}}}"),
        {output});
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_dancer_nodes, WanDancerNodes)

BOOST_AUTO_TEST_CASE(a_music_is_measured_as_librosa_does) {
  const std::string heard = "heard.audio_encoder_output";
  const auto features = [&](const std::string& flow, const std::string& name) {
    const heddle::Results made = looked(flow, R"(["heard", 0])", heard.c_str());
    const std::vector<float> all = made.floats(heard, "audio_feature"),
                             wanted = expected.floats(name);
    BOOST_TEST_REQUIRE(all.size() == wanted.size());
    // Of each column by itself: the first of a timbre are a hundred times larger than notes.
    constexpr std::size_t kColumns = 35;
    for (std::size_t column = 0; column < kColumns; ++column) {
      double difference = 0, whole = 0;
      for (std::size_t i = column; i < all.size(); i += kColumns) {
        difference += std::pow(double(all[i]) - wanted[i], 2);
        whole += std::pow(double(wanted[i]), 2);
      }
      BOOST_TEST(difference <= 1e-8 * whole,
                 name << ", column " << column << ": " << std::sqrt(difference / whole));
    }
  };
  features(measured(R"(["tune", 0])", 1), "apart.music");
  features(part(2) + measured(R"(["part", 2])", 1), "film.music");
}

BOOST_AUTO_TEST_CASE(frames_a_second_are_told_in_words) {
  const auto words = [&](const std::string& flow) {
    return looked(flow, R"(["heard", 1])", "heard.fps_string").text("heard.fps_string");
  };
  BOOST_TEST(words(measured(R"(["tune", 0])", 1)) == " 帧率是5.0000");
  BOOST_TEST(words(part(0) + measured(R"(["part", 2])", 1)) == ", 帧率是30fps。");
}

BOOST_AUTO_TEST_CASE(parts_of_a_film_have_their_keyframes_and_their_music) {
  for (const int number : {0, 2, 5}) {
    const std::string name = cat("part.", number, ".");
    const auto made = [&](int output, const char* what) {
      return looked(part(number), cat(R"(["part", )", output, "]").c_str(), what);
    };
    BOOST_TEST(made(0, "part.keyframes_sequence").floats("part.keyframes_sequence") ==
               expected.floats(name + "frames"));
    BOOST_TEST(made(1, "part.keyframes_mask").floats("part.keyframes_mask") ==
               expected.floats(name + "mask"));
    const std::vector<float> sound = made(2, "part.audio_segment")
                                         .floats("part.audio_segment", "waveform"),
                             tune = expected.floats("tune"),
                             points = expected.floats(name + "points");
    const auto begin = std::ptrdiff_t(points[0]), end = std::ptrdiff_t(points[1]),
               all = std::ptrdiff_t(tune.size() / 2);
    std::vector<float> wanted(tune.begin() + begin, tune.begin() + end);
    wanted.insert(wanted.end(), tune.begin() + all + begin, tune.begin() + all + end);
    BOOST_TEST(sound == wanted, name << sound.size() << " points");
  }
}

BOOST_AUTO_TEST_CASE(all_parts_at_once_are_those_one_by_one) {
  const std::string parts =
      node_of("parts", "WanDancerPadKeyframesList",
              cat(R"("images": ["pictures", 0], "audio": ["tune", 0], "num_segments": 3,
             "segment_length": )",
                  kDanceFrames));
  const auto last = [&](int output) {
    return cat(parts, node_of("last", "GetItemFromList",
                              cat(R"("index": 2, "list": ["parts", )", output, "]")));
  };
  const auto joined = [&](int output, const char* path) {
    return looked(last(output), R"(["last", 0])", "last.*").floats("last.*", path);
  };
  BOOST_TEST(joined(0, "0") == expected.floats("part.2.frames"));
  BOOST_TEST(joined(1, "0") == expected.floats("part.2.mask"));
  const std::vector<float> points = expected.floats("part.2.points");
  BOOST_TEST(joined(2, "0.waveform").size() == 2 * std::size_t(points[1] - points[0]));
}

BOOST_AUTO_TEST_CASE(a_dance_of_frames_that_lie_apart_equals_pytorch) {
  compare(latent_of(drawn("flow", apart())), "apart.latent");
}

BOOST_AUTO_TEST_CASE(a_part_of_a_dance_with_keyframes_equals_pytorch) {
  compare(latent_of(drawn("flow", film())), "film.latent");
}

BOOST_AUTO_TEST_CASE(dividing_a_dance_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::string flow = drawn("flow", apart());
  const std::vector<float> of_one = draw(options_for({"cpu:0"}), flow);
  const auto divided = [&](const char* mode) {
    return draw(
        options_for({"fake:0", "fake:1"}),
        drawn("flow", apart(), cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(of_one, divided(mode)), mode);
  BOOST_TEST(are_equal(of_one, draw(options_for({"fake:0"}, std::uint64_t{16} << 20), flow)),
             "little memory");
  const double error = relative_error(divided("sequence"), of_one);
  BOOST_TEST_MESSAGE("sequence: relative error " << error);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_dance_is_told_before_a_run) {
  const std::string sound = R"("tune": {"class_type": "EmptyAudio", "inputs": {"duration": 2.5,
      "sample_rate": 8000, "channels": 2}})",
                    pictures = R"("pictures": {"class_type": "EmptyImage", "inputs": {"width": 12,
      "height": 9, "batch_size": 18, "color": 255000}})",
                    one_picture = R"("first": {"class_type": "EmptyImage", "inputs": {"width": 12,
      "height": 9, "batch_size": 1, "color": 255}})";
  for (const std::string& node : {apart(), film()}) {
    std::string flow = drawn("flow", node);
    const auto replace = [&](const char* name, const std::string& by) {
      const std::size_t from = flow.find(cat("\"", name, R"(": {"class_type")")),
                        to = flow.find("}}", from) + 2;
      flow.replace(from, to - from, by);
    };
    replace("tune", sound);
    replace("pictures", pictures);
    replace("first", one_picture);
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, flow);
  }
}

BOOST_AUTO_TEST_CASE(what_a_dancer_cannot_go_by_is_refused) {
  // Sides whose frames' tokens have no eighths.
  const std::string first = R"(, "start_image": ["first", 0])";
  refused(drawn("flow", measured(R"(["tune", 0])", 1) + dancing(cat(first, kHeard), 80)),
          {"4 x 5 tokens", "multiple of 8", "WanDancerVideo"});
  // A music of other numbers than the model reads.
  std::vector<FileTensor> other = seeded_model("flow", true, "wan_dancer");
  for (FileTensor& tensor : other)
    if (tensor.name == "music_projection.weight") tensor = seeded_tensor(tensor.name, {64, 6});
  add("diffusion_models/dancer_other", other);
  refused(drawn("other", measured(R"(["tune", 0])", 1) + dancing(cat(first, kHeard))),
          {"audio_embed", "6 numbers", "WanDancerEncodeAudio"});
  const std::string states = given("heard", "test.heard", "seen", R"(, "points": 4700)");
  refused(drawn("flow", states + dancing(cat(first, kHeard))),
          {"audio_encoder_output", "no measured music", "WanDancerEncodeAudio"});
  // The mask of a part that is no 4 n + 1 frames.
  std::string uneven = film();
  const std::string length = cat(R"("segment_length": )", kDanceFrames);
  uneven.replace(uneven.find(length), length.size(), R"("segment_length": 12)");
  refused(drawn("flow", uneven), {"mask", "12 frames", "4 n + 1"});
  // A part behind the end of the music.
  std::string behind = film();
  const std::string number = R"("segment_index": 2)";
  behind.replace(behind.find(number), number.size(), R"("segment_index": 9)");
  refused(drawn("flow", behind), {"audio", "no points", "num_segments"});
  std::string many = measured(R"(["tune", 0])", 1);
  const std::string frames = cat(R"("video_frames": )", kDanceFrames);
  many.replace(many.find(frames), frames.size(), R"("video_frames": 201)");
  refused(drawn("flow", many + dancing(cat(first, kHeard))),
          {"76 moments", "video_frames is 201", "longer music"});
}

BOOST_AUTO_TEST_SUITE_END()
