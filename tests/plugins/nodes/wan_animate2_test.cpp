// WanAnimate2ToVideo, WanAnimate2Cache and what Wan Animate 2 draws of them, with ComfyUI's nodes,
// against PyTorch (../goldens/make_wan_animate2_goldens.py).
#include <algorithm>

#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

// Of a device that does not hold all weights.
constexpr std::uint64_t kAnimate2Budget = 6 << 20;

struct WanAnimate2Nodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_animate2/expected.safetensors";
  TensorFile expected{golden};

  WanAnimate2Nodes() {
    add("diffusion_models/wan_animate_2_bf16", seeded_model("flow", true, "wan_animate2"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string frames(const std::string& name, int first, int count) {
    return cat(", \"", name,
               R"(": {"class_type": "ImageFromBatch", "inputs": {"image": ["pictures", 0], )"
               R"("batch_index": )",
               std::to_string(first), R"(, "length": )", std::to_string(count), "}}");
  }
  std::string nodes() const {
    std::string all = loaded("wan_animate_2_bf16");
    for (const char* name : {"one", "two", "pose"})
      all += cat(", \"", name, "\": ", text(name, golden));
    return cat(
        all,
        R"(, "cached": {"class_type": "WanAnimate2Cache", "inputs": {"model": ["model", 0], "device": "cpu",
        "dtype": "default"}}, "pictures": {"class_type": "test.image", "inputs": {"path": ")",
        golden.string(),
        R"(", "name": "pictures"}}, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}})",
        frames("shown", 10, 1), frames("followed", 0, 10), frames("before", 0, 6));
  }
  static std::string node(const std::string& more, int offset = 6) {
    return cat(R"(, "node": {"class_type": "WanAnimate2ToVideo", "inputs": {"positive": ["one", 0],
      "negative": ["two", 0], "vae": ["vae", 0], "width": 48, "height": 32, "length": 9,
      "batch_size": 1, "pose_strength": 1.0, "reference_image_strength": 1.0, "video_frame_offset": )",
               std::to_string(offset), more, "}}");
  }
  std::string given(const char* range = kWhole) const { return nodes() + node(kAll + cat(range)); }
  static std::string drawn(const std::string& nodes, const std::string& hints = "",
                           const char* model = "cached") {
    return cat(
        "{", nodes, R"(, "out": {"class_type": "KSampler", "inputs": {"model": [")", model,
        R"(", 0], "seed": 7, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
        "positive": ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2],
        "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  heddle::Results told(const std::string& nodes, int output) {
    return run_whole(
        cat("{", nodes, R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", )",
            std::to_string(output),
            R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value"});
  }

  static constexpr const char* kWhole = R"(, "pose_start_percent": 0.0, "pose_end_percent": 1.0)";
  // Frames that go on, with all that may be given: one is known, so that what is followed is read
  // from the sixth one on.
  static constexpr const char* kAll =
      R"(, "reference_image": ["shown", 0], "pose_video": ["followed", 0], "positive_pose": ["pose", 0],
      "continue_motion": ["before", 0])";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_animate2_nodes, WanAnimate2Nodes)

BOOST_AUTO_TEST_CASE(what_animate_2_is_given_equals_pytorch) {
  for (const int output : {0, 1}) {
    const heddle::Results entry = told(given(), output);
    compare(entry.floats("entry.value", "concat_latent_image"), "all.concat");
    BOOST_TEST(entry.floats("entry.value", "concat_mask") == expected.floats("all.mask"));
    compare(entry.floats("entry.value", "pose_video_latent"), "all.pose");
    compare(entry.floats("entry.value", "pose_cross_attn"), "in.pose.cross_attn");
  }
  const heddle::Results bare = told(nodes() + node(kWhole), 0);
  compare(bare.floats("entry.value", "concat_latent_image"), "bare.concat");
  BOOST_TEST(bare.floats("entry.value", "concat_mask") == expected.floats("bare.mask"));
  BOOST_CHECK_THROW(bare.floats("entry.value", "pose_video_latent"), std::exception);
}

BOOST_AUTO_TEST_CASE(what_is_cut_off_and_where_the_next_part_begins_is_told_of_animate_2) {
  const auto numbers = [&](const std::string& all) {
    std::string flow = cat("{", all), told;
    for (const char* output : {"3", "4", "5"})
      flow +=
          cat(", \"show", output,
              R"(": {"class_type": "PreviewAny", "inputs": {"source": ["node", )", output, "]}}");
    const heddle::engine::Json ui =
        heddle::engine::parse_json(run_whole(flow + "}", {}).ui(), "ui");
    for (const char* output : {"show3", "show4", "show5"})
      told += ui.at(output).at("text").as_array().at(0).as_string() + " ";
    return told;
  };
  BOOST_TEST(numbers(given()) == "1 1 14 ");
  BOOST_TEST(numbers(nodes() + node(kWhole, 11)) == "0 0 20 ");
}

BOOST_AUTO_TEST_CASE(a_video_that_follows_another_equals_pytorch) {
  compare(run_whole(drawn(given()), {"out.LATENT"}).floats("out.LATENT", "samples"), "all.latent");
}

// Of three steps the second one follows; a start behind the end follows nothing.
BOOST_AUTO_TEST_CASE(a_part_of_the_steps_follows) {
  compare(run_whole(drawn(given(R"(, "pose_start_percent": 0.2, "pose_end_percent": 0.6)")),
                    {"out.LATENT"})
              .floats("out.LATENT", "samples"),
          "part.latent");
}

BOOST_AUTO_TEST_CASE(a_video_that_follows_nothing_equals_pytorch) {
  const std::string bare = nodes() + node(kWhole, 0);
  for (const char* model : {"cached", "model"})
    compare(run_whole(drawn(bare, "", model), {"out.LATENT"}).floats("out.LATENT", "samples"),
            "bare.latent");
}

BOOST_AUTO_TEST_CASE(dividing_animate_2_keeps_its_bytes, *boost::unit_test::label("long")) {
  const std::string nodes = given();
  const std::vector<float> alone = draw(options_for({"cpu:0"}), drawn(nodes));
  for (const char* mode : {"layers", "cfg"})
    BOOST_TEST(are_equal(alone, draw(options_for({"fake:0", "fake:1"}),
                                     drawn(nodes, cat(R"(, "parallel": ")", mode,
                                                      R"(", "device": "fake:0,fake:1")")))),
               mode);
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, kAnimate2Budget), drawn(nodes))),
             "little memory");
}

// Of texts and pictures that are known before.
BOOST_AUTO_TEST_CASE(what_is_followed_is_told_before_a_run, *boost::unit_test::label("long")) {
  for (const char* range : {kWhole, R"(, "pose_start_percent": 0.2, "pose_end_percent": 0.6)"}) {
    heddle::Engine::Data told(options_for({"cpu:0"}));
    std::string known = given(range);
    for (const char* name : {"one", "two", "pose"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      known.insert(known.find(begin) + begin.size(), "given_");
    }
    const std::size_t from = known.find(R"("pictures": {)"), to = known.find("}}", from) + 2;
    known.replace(
        from, to - from,
        R"("pictures": {"class_type": "EmptyImage", "inputs": {"width": 28, "height": 20, "batch_size": 11, "color": 5}})");
    check_inference(told, drawn(known));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said_of_animate_2) {
  const auto refused = [&](const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  refused(drawn(given(), "", "model"), {"WanAnimate2ToVideo", "WanAnimate2Cache"});
  std::string strong = given();
  const std::string strength = R"("pose_strength": 1.0)";
  strong.replace(strong.find(strength), strength.size(), R"("pose_strength": 0.5)");
  refused(drawn(strong), {"pose_strength", "0.5"});
}

BOOST_AUTO_TEST_SUITE_END()
