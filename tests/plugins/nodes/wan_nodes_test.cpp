// What Wan reads beside the text: frames that are given, and what CLIP saw of them; and the nodes
// that tell it, against PyTorch (../goldens/make_umt5_goldens.py).
#include <algorithm>

#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct WanVideoNodes : PlacedFixture {
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/umt5/expected.safetensors";
  TensorFile expected{golden};

  void add_transformer(const std::string& kind) const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "umt5");
    for (FileTensor& tensor : tensors) tensor.name.erase(0, kind.size() + 1);
    add("diffusion_models/" + kind, tensors);
  }
  void add_autoencoder() const { add("vae/wan_2.1_vae", seeded_model("qwen_image.vae")); }
  static std::string vae() {
    return R"("vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}})";
  }
  std::string picture(const char* name = "frames.pictures") const {
    return cat(R"({"class_type": "test.image", "inputs": {"path": ")", golden.string(),
               R"(", "name": ")", name, R"("}})");
  }
  // A sampler of "model" from conditionings and a latent that are linked as told.
  static std::string drawn(const std::string& nodes, const std::string& positive,
                           const std::string& negative, const std::string& latent) {
    return cat(
        "{", nodes, R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0],
        "seed": 7, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": )",
        positive, R"(, "negative": )", negative, R"(, "latent_image": )", latent,
        R"(, "denoise": 1.0}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  std::string given(const std::string& kind, const char* positive, const char* negative,
                    int length = 9) const {
    return drawn(
        cat(loaded(kind), R"(, "one": )", text(positive, golden), R"(, "two": )",
            text(negative, golden),
            R"(, "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 48, "length": )",
            std::to_string(length), R"(, "batch_size": 1}})"),
        R"(["one", 0])", R"(["two", 0])", R"(["empty", 0])");
  }
  void compare_video(const std::string& flow, const std::string& name) {
    const double error = relative_error(
        run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples"), expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  // A node of the sizes 48 x 32, with texts and the picture "start" beside it.
  std::string node(const char* type, const std::string& inputs, int length = 1) const {
    return cat(vae(), R"(, "one": )", text("first", golden), R"(, "two": )", text("last", golden),
               R"(, "start": )", picture(), R"(, "node": {"class_type": ")", type,
               R"(", "inputs": {"positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0],
        "width": 48, "height": 32, "length": )",
               std::to_string(length), R"(, "batch_size": 2)", inputs, "}}");
  }
  // A tensor of the entry that an output's list begins with.
  std::vector<float> told(const std::string& nodes, int output, const char* path) {
    return run_whole(
               cat("{", nodes,
                   R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", )",
                   std::to_string(output),
                   R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
               {"entry.value"})
        .floats("entry.value", path);
  }
  std::vector<float> latent_of(const std::string& nodes) {
    return run_whole(
               cat("{", nodes,
                   R"(, "look": {"class_type": "test.look", "inputs": {"value": ["node", 2]}}})"),
               {"node.latent"})
        .floats("node.latent", "samples");
  }
  void has_refusal(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_video_nodes, WanVideoNodes)

BOOST_AUTO_TEST_CASE(a_video_whose_first_frame_is_given_and_seen_equals_pytorch) {
  add_transformer("seeing");
  compare_video(given("seeing", "first", "last"), "seen.latent");
}

BOOST_AUTO_TEST_CASE(a_video_that_follows_two_others_equals_pytorch) {
  add_transformer("following");
  compare_video(given("following", "both", "other"), "followed.latent");
}

BOOST_AUTO_TEST_CASE(a_first_frame_is_resized_from_its_middle_and_encoded) {
  add_autoencoder();
  const std::string nodes = node("WanImageToVideo", R"(, "start_image": ["start", 0])");
  for (const int output : {0, 1}) {
    const double error =
        relative_error(told(nodes, output, "concat_latent_image"), expected.floats("frames.first"));
    BOOST_TEST_MESSAGE("relative error " << error);
    BOOST_TEST(error < kTolerance, "relative error " << error);
  }
  BOOST_TEST(told(nodes, 0, "concat_mask") == std::vector<float>(4 * 6, 0.0f));
  BOOST_TEST(latent_of(nodes) == std::vector<float>(2 * 16 * 4 * 6, 0.0f));
}

BOOST_AUTO_TEST_CASE(first_and_last_frames_are_one_where_a_video_has_one) {
  add_autoencoder();
  for (const char* type : {"WanFirstLastFrameToVideo", "WanFunInpaintToVideo"}) {
    const std::string nodes = node(type, R"(, "end_image": ["start", 0])");
    const double error =
        relative_error(told(nodes, 0, "concat_latent_image"), expected.floats("frames.second"));
    BOOST_TEST(error < kTolerance, type << ": relative error " << error);
    // Of the four frames in the latent's only one the last is given.
    std::vector<float> mask(4 * 4 * 6, 1.0f);
    std::fill(mask.begin() + 3 * 4 * 6, mask.end(), 0.0f);
    BOOST_TEST(told(nodes, 1, "concat_mask") == mask);
    BOOST_TEST(told(node(type, R"(, "start_image": ["start", 0])"), 0, "concat_mask") ==
               std::vector<float>(4 * 4 * 6, 0.0f));
  }
}

BOOST_AUTO_TEST_CASE(a_followed_video_comes_before_the_given_frames) {
  add_autoencoder();
  const std::vector<float> both = told(
      node("WanFunControlToVideo", R"(, "control_video": ["start", 0])"), 0, "concat_latent_image");
  BOOST_TEST_REQUIRE(both.size() == 2u * 16 * 4 * 6);
  const auto middle = both.begin() + 16 * 4 * 6;
  BOOST_TEST(relative_error({both.begin(), middle}, expected.floats("frames.first")) < kTolerance);
  // What is 0 in the model's units: the means that the autoencoder was published with.
  BOOST_TEST(std::all_of(middle, middle + 4 * 6, [](float x) { return x == -0.7571f; }));
  BOOST_TEST(std::all_of(both.end() - 4 * 6, both.end(), [](float x) { return x == -0.2921f; }));
}

// What is given, and which frames of the latent hold it: 1 is drawn anew.
BOOST_AUTO_TEST_CASE(given_frames_stand_in_a_video_whose_others_are_grey) {
  add_autoencoder();
  const auto check = [&](const char* type, const std::string& inputs, const char* name,
                         const std::vector<float>& drawn_anew) {
    const std::string nodes = node(type, inputs, 9);
    const double error =
        relative_error(told(nodes, 0, "concat_latent_image"), expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
    std::vector<float> mask;
    for (const float number : drawn_anew) mask.insert(mask.end(), 4 * 6, number);
    BOOST_TEST(told(nodes, 1, "concat_mask") == mask);
    BOOST_TEST(latent_of(nodes).size() == 2u * 16 * 3 * 4 * 6);
  };
  const std::string start = R"(, "start_image": ["start", 0])",
                    end = R"(, "end_image": ["start", 0])";
  check("WanImageToVideo", start, "frames.begun", {0, 1, 1});
  check(
      "WanImageToVideo",
      R"(, "start_image": ["first", 0], "ref_pad_image": ["second", 0]}}, "first": {"class_type": "ImageFromBatch", "inputs": {"image": ["start", 0], "batch_index": 0, "length": 1}}, "second": {"class_type": "ImageFromBatch", "inputs": {"image": ["start", 0], "batch_index": 1, "length": 1)",
      "frames.padded", {0, 1, 1});
  // Four numbers for each frame of the latent, by channels: of two first frames five are given, of
  // two last ones two.
  check("WanFirstLastFrameToVideo", start + end, "frames.both",
        {0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0});
  check("WanFunInpaintToVideo", start, "frames.begun", {0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1});
}

BOOST_AUTO_TEST_CASE(a_followed_video_is_encoded_as_one) {
  add_autoencoder();
  const std::vector<float> both = told(
      node(
          "WanFunControlToVideo",
          R"(, "control_video": ["all", 0]}}, "all": {"class_type": "RepeatImageBatch", "inputs": {"image": ["start", 0], "amount": 5)",
          9),
      0, "concat_latent_image");
  BOOST_TEST_REQUIRE(both.size() == 2u * 16 * 3 * 4 * 6);
  BOOST_TEST(relative_error({both.begin(), both.begin() + 16 * 3 * 4 * 6},
                            expected.floats("frames.followed")) < kTolerance);
}

// Of texts and a picture that are known before.
BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_transformer("seeing");
  add_autoencoder();
  heddle::Engine::Data told(options_for({"cpu:0"}));
  constexpr const char* kStart =
      R"(, "start_image": ["told", 0]}}, "told": {"class_type": "EmptyImage", "inputs": {"width": 28, "height": 20, "batch_size": 1, "color": 5)";
  for (const int length : {1, 9})
    for (const char* type : {"WanImageToVideo", "WanFunInpaintToVideo"}) {
      std::string nodes = cat(loaded("seeing"), ", ", node(type, kStart, length));
      for (const char* name : {"one", "two"}) {
        const std::string text = cat("\"", name, R"(": {"class_type": "test.)");
        nodes.insert(nodes.find(text) + text.size(), "given_");
      }
      check_inference(told, drawn(nodes, R"(["node", 0])", R"(["node", 1])", R"(["node", 2])"));
    }
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said) {
  add_transformer("seeing");
  add_transformer("following");
  add_autoencoder();
  has_refusal(given("seeing", "first", "last", 13), {"3 latent frames", "has 4"});
  has_refusal(given("following", "first", "last"), {"16 latent channels", "reads 32"});
}

BOOST_AUTO_TEST_SUITE_END()
