// SCAIL2ColoredMask and WanSCAILToVideo, and what SCAIL 2 draws of them, against PyTorch
// (../goldens/make_wan_scail_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct WanScailNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_scail/expected.safetensors";
  TensorFile expected{golden};

  WanScailNodes() {
    add("diffusion_models/flow", seeded_model("flow", true, "wan_scail"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  std::string given(const std::string& name, const char* type, const std::string& more = "") const {
    return node_of(name, cat("test.", type),
                   cat(R"("path": ")", golden.string(), R"(", "name": ")", name, "\"", more));
  }

  // What is painted, without the nodes of a video.
  std::vector<float> painted(const std::string& more, const char* output) {
    const std::string size = R"(, "height": 12, "width": 20)";
    return run_whole(cat("{", given("tracks", "tracks", size).substr(2),
                         given("shown", "tracks", size), given("mask", "mask"),
                         node_of("node", "SCAIL2ColoredMask",
                                 cat(R"("driving_track_data": ["tracks", 0])", more)),
                         R"(, "look": {"class_type": "test.look", "inputs": {"value": ["node", )",
                         output == std::string("pose_video_mask") ? 0 : 1, "]}}}"),
                     {cat("node.", output)})
        .floats(cat("node.", output), "");
  }
  void same(const std::vector<float>& made, const std::string& name) {
    BOOST_TEST(are_equal(made, expected.floats(name)), name << " is another one");
  }

  std::string nodes() const {
    return cat(loaded("flow"), R"(, "one": )", text("one", golden), R"(, "two": )",
               text("two", golden), given("pictures", "image"), given("poses", "image"),
               given("colours", "image"), given("shapes", "image"), given("before", "image"),
               node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"),
               node_of("first", "ImageFromBatch",
                       R"("image": ["pictures", 0], "batch_index": 0, "length": 1)"));
  }
  static std::string moving(const std::string& more, int length = 9) {
    return node_of("node", "WanSCAILToVideo",
                   cat(R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0],
                          "width": 64, "height": 32, "batch_size": 1, "length": )",
                       length, more));
  }
  static constexpr const char* kAll =
      R"(, "pose_video": ["poses", 0], "pose_video_mask": ["colours", 0], "reference_image":
         ["pictures", 0], "reference_image_mask": ["shapes", 0])";
  static constexpr const char* kWeak = R"(, "pose_strength": 0.5)";
  static constexpr const char* kReplaced = R"(, "replacement_mode": true)";
  static constexpr const char* kOn =
      R"(, "pose_video": ["poses", 0], "reference_image": ["first", 0], "previous_frames":
         ["before", 0], "previous_frame_count": 5, "video_frame_offset": 6, "pose_end": 0.5)";

  std::string drawn(const std::string& node, const std::string& hints = "") const {
    return cat("{", nodes(), node,
               R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
                "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive":
                ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2], "denoise": 1.0})",
               hints, "}, ", kLook, "}");
  }
  // Of texts and pictures that are known before a run.
  static std::string known(std::string flow) {
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    for (const char* name : {"pictures", "poses", "colours", "shapes", "before"}) {
      const std::size_t from = flow.find(cat("\"", name, R"(": {)")),
                        to = flow.find("}}", from) + 2;
      flow.replace(from, to - from,
                   cat("\"", name, R"(": {"class_type": "EmptyImage", "inputs":
          {"width": 36, "height": 20, "batch_size": )",
                       name == std::string("poses") ? 11 : 2, R"(, "color": 16711680}})"));
    }
    return flow;
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  std::vector<float> latent_of(const std::string& flow) {
    return run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
  }
  std::vector<float> told(const std::string& node, int output, const char* path) {
    return run_whole(cat("{", nodes(), node,
                         R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", )",
                         output,
                         R"(]}}, "look": {"class_type": "test.look", "inputs": {"value":
                         ["entry", 0]}}})"),
                     {"entry.value"})
        .floats("entry.value", path);
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_scail_nodes, WanScailNodes)

BOOST_AUTO_TEST_CASE(things_are_painted_as_comfyui_paints_them) {
  const std::string shown = R"(, "ref_track_data": ["shown", 0])";
  for (const char* order : {"none", "left_to_right", "area"}) {
    const std::string by = cat(shown, R"(, "sort_by": ")", order, "\"");
    same(painted(by, "pose_video_mask"), cat("pose_masks.", order));
    same(painted(by, "reference_image_mask"), cat("shown_masks.", order));
  }
  const std::string replaced = cat(shown, R"(, "replacement_mode": true)");
  same(painted(replaced, "pose_video_mask"), "pose_masks.left_to_right.replaced");
  same(painted(replaced, "reference_image_mask"), "shown_masks.left_to_right.replaced");
  same(painted(R"(, "object_indices": "2, 0,7, x")", "pose_video_mask"), "chosen");
  same(painted(R"(, "ref_track_data": ["mask", 0])", "reference_image_mask"), "painted");
}

BOOST_AUTO_TEST_CASE(where_nothing_was_followed_there_is_the_ground) {
  const std::vector<float> none = painted(R"(, "object_indices": "9")", "pose_video_mask"),
                           bare = painted("", "reference_image_mask");
  BOOST_TEST(none == std::vector<float>(3 * 12 * 20 * 3, 0.0f), boost::test_tools::per_element());
  BOOST_TEST(bare == std::vector<float>(12 * 20 * 3, 1.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(colours_become_channels_as_in_comfyui) {
  for (const int output : {0, 1}) {
    same(told(moving(kAll), output, "driving_mask_28ch"), "driving");
    same(told(moving(kAll), output, "ref_mask_28ch"), "reference");
  }
}

BOOST_AUTO_TEST_CASE(a_video_that_follows_poses_equals_pytorch) {
  compare(latent_of(drawn(moving(cat(kAll, kWeak)))), "latent");
  compare(latent_of(drawn(moving(cat(kAll, kReplaced)))), "replaced.latent");
}

BOOST_AUTO_TEST_CASE(a_video_that_goes_on_equals_pytorch) {
  compare(latent_of(drawn(moving(kOn))), "on.latent");
}

// Of four steps the third begins at half of the way. It follows poses that end, or begin, there,
// and is no mean of what follows them and what does not.
BOOST_AUTO_TEST_CASE(a_step_on_the_boundary_follows_poses_alone) {
  const auto latent = [&](const char* range) {
    std::string flow = drawn(moving(cat(kAll, range)));
    const std::string steps = R"("steps": 3)";
    return latent_of(flow.replace(flow.find(steps), steps.size(), R"("steps": 4)"));
  };
  const std::vector<float> ends = latent(R"(, "pose_end": 0.5)"),
                           begins = latent(R"(, "pose_start": 0.5)");
  BOOST_TEST(are_equal(ends, latent(R"(, "pose_end": 0.502)")));
  BOOST_TEST(are_equal(begins, latent(R"(, "pose_start": 0.498)")));
  BOOST_TEST(relative_error(ends, latent(R"(, "pose_end": 0.498)")) > kTolerance);
  BOOST_TEST(relative_error(begins, latent(R"(, "pose_start": 0.502)")) > kTolerance);
}

BOOST_AUTO_TEST_CASE(no_frames_before_are_as_none) {
  const std::filesystem::path file = folder / "none.safetensors";
  write_safetensors(file, {{"none", "F32", {0, 12, 20, 3}}});
  const std::string node =
      moving(R"(, "reference_image": ["first", 0], "previous_frames": ["none", 0])");
  std::string flow = drawn(node), bare = node;
  flow.insert(flow.size() - 1, node_of("none", "test.image",
                                       cat(R"("path": ")", file.string(), R"(", "name": "none")")));
  const std::string link = R"(, "previous_frames": ["none", 0])";
  bare.erase(bare.find(link), link.size());
  BOOST_TEST(are_equal(latent_of(flow), latent_of(drawn(bare))));
}

BOOST_AUTO_TEST_CASE(parts_begin_behind_each_other) {
  const auto offset = [&](const std::string& more) {
    return run_whole(cat("{", nodes(), moving(more), R"(, "shown": {"class_type": "PreviewAny",
                         "inputs": {"source": ["node", 3]}}})"),
                     {"shown.STRING"})
        .text("shown.STRING");
  };
  BOOST_TEST(offset("") == "9");
  BOOST_TEST(offset(kOn) == "10");
  BOOST_TEST(offset(R"(, "previous_frames": ["before", 0], "video_frame_offset": 3)") == "9");
}

BOOST_AUTO_TEST_CASE(dividing_a_video_of_poses_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::string node = moving(cat(kAll, kReplaced)), flow = known(drawn(node));
  const std::vector<float> of_one = draw(options_for({"cpu:0"}), flow);
  const auto divided = [&](const char* mode) {
    return draw(
        options_for({"fake:0", "fake:1"}),
        known(drawn(node, cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"))));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(of_one, divided(mode)), mode);
  BOOST_TEST(are_equal(of_one, draw(options_for({"fake:0"}, std::uint64_t{16} << 20), flow)),
             "little memory");
  for (const char* mode : {"sequence", "tensor"}) {
    const double error = relative_error(divided(mode), of_one);
    BOOST_TEST_MESSAGE(mode << ": relative error " << error);
    BOOST_TEST(error < kTolerance, mode << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(a_video_of_poses_is_told_before_a_run) {
  for (const std::string& more : {std::string(), cat(kAll, kReplaced), std::string(kOn)}) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, known(drawn(moving(more))));
  }
}

// And not of what is read last.
BOOST_AUTO_TEST_CASE(the_memory_of_the_most_frames_of_scail_is_told) {
  const auto told = [&](const std::string& more, int length) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    return infer_and_run(data, known(drawn(moving(more, length)))).inferred.host_scratch.at("node");
  };
  constexpr const char* kPoses = R"(, "pose_video": ["poses", 0])";
  const std::uint64_t frames = sizeof(float) * 4 * 16 * 32 * 3;  // of a frame of the latent
  BOOST_TEST(told(kPoses, 9) >= told(kPoses, 5) + frames);
  BOOST_TEST(told(kAll, 9) >= told(kPoses, 9));
}

BOOST_AUTO_TEST_CASE(what_scail_cannot_follow_is_refused) {
  // Another latent than the node's own.
  std::string other = drawn(moving(kAll));
  const std::string at = R"("latent_image": ["node", 2])";
  other.replace(other.find(at), at.size(), R"("latent_image": ["wide", 0])");
  refused(other.insert(1, R"("wide": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width":
              96, "height": 32, "length": 9, "batch_size": 1}}, )"),
          {"a reference picture of the conditioning is (1, 16, 1, 4, 8)", "WanSCAILToVideo"});
  std::string area = drawn(moving(kAll));
  const std::string positive = R"(["node", 0], "negative": ["node", 1])";
  area.replace(area.find(positive), positive.size(), R"(["area", 0], "negative": ["node", 1])");
  refused(area.insert(1, R"("area": {"class_type": "ConditioningSetArea", "inputs": {"conditioning":
              ["node", 0], "width": 64, "height": 64, "x": 32, "y": 0, "strength": 1.0}}, )"),
          {"WanSCAILToVideo", "area"});
  std::string windows = drawn(moving(kAll));
  const std::string model = R"("inputs": {"model": ["model", 0])";
  windows.replace(windows.find(model), model.size(), R"("inputs": {"model": ["windows", 0])");
  refused(windows.insert(1, R"("windows": {"class_type": "WanContextWindowsManual", "inputs":
              {"model": ["model", 0], "context_length": 5, "context_overlap": 1, "context_schedule":
              "standard_static", "context_stride": 1, "closed_loop": false, "fuse_method":
              "pyramid", "freenoise": false}}, )"),
          {"WanSCAILToVideo", "context windows"});
}

BOOST_AUTO_TEST_SUITE_END()
