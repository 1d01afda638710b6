// WanAnimateToVideo and what Wan 2.2 Animate draws of it, with ComfyUI's nodes, against PyTorch
// (../goldens/make_wan_animate_goldens.py).
#include <algorithm>

#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr std::size_t kFaceStep = 1009;  // of the face's numbers, those that the golden holds

struct WanAnimateNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_animate/expected.safetensors";
  TensorFile expected{golden};

  WanAnimateNodes() {
    add("diffusion_models/wan2.2_animate_14B_bf16", seeded_model("flow", true, "wan_animate"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string frames(const std::string& name, int first, int count) {
    return cat(", \"", name,
               R"(": {"class_type": "ImageFromBatch", "inputs": {"image": ["pictures", 0], )"
               R"("batch_index": )",
               std::to_string(first), R"(, "length": )", std::to_string(count), "}}");
  }
  std::string nodes() const {
    const auto given = [&](const char* type, const char* name) {
      return cat(R"({"class_type": "test.)", type, R"(", "inputs": {"path": ")", golden.string(),
                 R"(", "name": ")", name, R"("}})");
    };
    return cat(
        loaded("wan2.2_animate_14B_bf16"), R"(, "one": )", text("one", golden), R"(, "two": )",
        text("two", golden), R"(, "pictures": )", given("image", "pictures"), R"(, "masks": )",
        given("mask", "masks"),
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}})",
        frames("shown", 10, 1), frames("poses", 0, 6));
  }
  static std::string node(const std::string& more, int offset = 6) {
    return cat(R"(, "node": {"class_type": "WanAnimateToVideo", "inputs": {"positive": ["one", 0],
      "negative": ["two", 0], "vae": ["vae", 0], "width": 48, "height": 32, "length": 9,
      "batch_size": 1, "continue_motion_max_frames": 5, "video_frame_offset": )",
               std::to_string(offset), more, "}}");
  }
  std::string given() const { return nodes() + node(kAll); }
  static std::string drawn(const std::string& nodes, const std::string& hints = "") {
    return cat("{", nodes, R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0],
        "seed": 7, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
        "positive": ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2],
        "denoise": 1.0})",
               hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
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

  // Frames that go on, with all that may be given: five frames are known, so that what is followed
  // is read from the second one on.
  static constexpr const char* kAll =
      R"(, "reference_image": ["shown", 0], "face_video": ["pictures", 0], "pose_video": ["poses", 0],
      "background_video": ["pictures", 0], "character_mask": ["masks", 0],
      "continue_motion": ["poses", 0])";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_animate_nodes, WanAnimateNodes)

BOOST_AUTO_TEST_CASE(what_animate_is_given_equals_pytorch) {
  const std::string all = given();
  for (const int output : {0, 1}) {
    const heddle::Results entry = told(all, output);
    compare(entry.floats("entry.value", "concat_latent_image"), "all.concat");
    BOOST_TEST(entry.floats("entry.value", "concat_mask") == expected.floats("all.mask"));
    compare(entry.floats("entry.value", "pose_video_latent"), "all.pose");
    const std::vector<float> face = entry.floats("entry.value", "face_video_pixels");
    BOOST_TEST_REQUIRE(face.size() == std::size_t(3 * 9 * 512 * 512));
    if (output == 1) {
      BOOST_TEST(std::ranges::all_of(face, [](float number) { return number == -1; }));
      continue;
    }
    std::vector<float> some;
    for (std::size_t i = 0; i < face.size(); i += kFaceStep) some.push_back(face[i]);
    compare(some, "all.face");
  }
}

BOOST_AUTO_TEST_CASE(what_is_cut_off_and_where_the_next_part_begins_is_told) {
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
  BOOST_TEST(numbers(given()) == "1 5 10 ");
  BOOST_TEST(numbers(nodes() + node("", 11)) == "1 0 20 ");
}

BOOST_AUTO_TEST_CASE(videos_behind_their_end_are_left_out) {
  const heddle::Results entry =
      told(nodes() + node(R"(, "face_video": ["pictures", 0], "pose_video": ["poses", 0])", 11), 0);
  compare(entry.floats("entry.value", "concat_latent_image"), "bare.concat");
  BOOST_CHECK_THROW(entry.floats("entry.value", "pose_video_latent"), std::exception);
  BOOST_CHECK_THROW(entry.floats("entry.value", "face_video_pixels"), std::exception);
}

BOOST_AUTO_TEST_CASE(a_video_that_follows_poses_and_a_face_equals_pytorch,
                     *boost::unit_test::label("long")) {
  compare(run_whole(drawn(given()), {"out.LATENT"}).floats("out.LATENT", "samples"), "all.latent");
}

BOOST_AUTO_TEST_CASE(a_video_of_nothing_but_texts_equals_pytorch) {
  compare(run_whole(drawn(nodes() + node("", 0)), {"out.LATENT"}).floats("out.LATENT", "samples"),
          "bare.latent");
}

BOOST_AUTO_TEST_CASE(dividing_animate_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::string nodes = given();
  const std::vector<float> alone = draw(options_for({"cpu:0"}), drawn(nodes));
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                drawn(nodes, cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(alone, divided(mode)), mode);
  const double error = relative_error(divided("sequence"), alone);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
  // Pictures of a face and what is computed leave less than the 8 MiB of all weights.
  BOOST_TEST(
      are_equal(alone, draw(options_for({"fake:0"}, std::uint64_t{165} << 20), drawn(nodes))),
      "little memory");
}

// Of texts and pictures that are known before.
BOOST_AUTO_TEST_CASE(poses_and_a_face_are_told_before_a_run, *boost::unit_test::label("long")) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  std::string known = given();
  for (const char* name : {"one", "two"}) {
    const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
    known.insert(known.find(begin) + begin.size(), "given_");
  }
  const auto replace = [&](const std::string& name, const std::string& by) {
    const std::size_t from = known.find(cat("\"", name, R"(": {)")),
                      to = known.find("}}", from) + 2;
    known.replace(from, to - from, cat("\"", name, "\": ", by));
  };
  replace(
      "pictures",
      R"({"class_type": "EmptyImage", "inputs": {"width": 28, "height": 20, "batch_size": 11, "color": 5}})");
  replace("masks",
          R"({"class_type": "SolidMask", "inputs": {"value": 0.5, "width": 14, "height": 10}})");
  check_inference(told, drawn(known));
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said_of_animate) {
  const auto refused = [&](const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  std::string flow = drawn(nodes() + node(R"(, "pose_video": ["poses", 0])", 0));
  const std::string from = R"("latent_image": ["node", 2])";
  flow.replace(flow.find(from), from.size(), R"("latent_image": ["other", 0])");
  refused(
      flow.insert(
          1,
          R"("other": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 32, "length": 13, "batch_size": 1}}, )"),
      {"pose_video_latent", "(1, 16, 3, 4, 6)", "(4, 4, 8)"});
  flow = drawn(nodes() + node(R"(, "pose_video": ["poses", 0])", 0));
  const std::string model = R"("inputs": {"model": ["model", 0])";
  flow.replace(flow.find(model), model.size(), R"("inputs": {"model": ["windows", 0])");
  refused(
      flow.insert(
          1, R"("windows": {"class_type": "ContextWindowsManual", "inputs": {"model": ["model", 0],
        "context_length": 2, "context_overlap": 1, "context_schedule": "standard_static",
        "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 2,
        "freenoise": false, "cond_retain_index_list": "", "split_conds_to_windows": false,
        "latent_retain_index_list": "", "causal_window_fix": true}}, )"),
      {"poses or a face", "Use one of the two"});
}

BOOST_AUTO_TEST_SUITE_END()
