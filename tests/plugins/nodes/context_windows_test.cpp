// Models that see a long latent in context windows: whole runs against PyTorch
// (make_window_goldens.py), over devices, in pieces, and what is refused.
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

constexpr const char* kSeen = R"("model": ["windows", 0])";

struct WindowFixture : NodeFixture {
  heddle::test::TensorFile expected{here() / "window_goldens.safetensors"};

  static std::string windows(const std::string& changes, const std::string& model = "model") {
    heddle::engine::Json inputs = heddle::engine::parse_json(
        cat(R"({"model": [")", model,
            R"(", 0], "context_length": 4, "context_overlap": 1, "context_schedule": "standard_static",
            "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 3,
            "freenoise": false, "cond_retain_index_list": "", "split_conds_to_windows": false,
            "latent_retain_index_list": "", "causal_window_fix": true})"),
        "inputs");
    const heddle::engine::Json changed = heddle::engine::parse_json("{" + changes + "}", "changes");
    for (const auto& member : changed.members()) inputs.set(member.key, member.value);
    return cat(R"("windows": {"class_type": "ContextWindowsManual", "inputs": )",
               heddle::engine::write_json(inputs), "}, ");
  }
  static std::string five() {
    return R"("five": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48,
        "batch_size": 5}}, )";
  }
  static std::string both() {
    return R"("both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["one", 0],
        "conditioning_2": ["three", 0]}}, )";
  }
  static std::string ring() {
    return windows(R"("dim": 2, "context_length": 3, "context_schedule": "looped_uniform",
        "context_stride": 2, "closed_loop": true, "fuse_method": "relative", "freenoise": true,
        "latent_retain_index_list": "0, -1", "causal_window_fix": false)") +
           R"("two_of": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48,
        "batch_size": 2}}, )";
  }
  static constexpr const char* kRing =
      R"("model": ["windows", 0], "latent_image": ["two_of", 0], "sampler_name": "heun", "steps": 3)";

  heddle::EngineOptions told_options() const {
    heddle::EngineOptions options = heddle::test::engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.output_dir = folder / "told";
    return options;
  }
  std::vector<float> drawn(const std::string& nodes, const std::string& changes) {
    return run(nodes + "\"out\": " + ksampler(changes) + ", " + kLook, {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  void check(const std::vector<float>& values, const std::string& golden) const {
    const double error = heddle::test::relative_error(values, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  void check_refused(const std::string& changes, const std::string& part,
                     const std::string& more = "") {
    const std::string said = heddle::test::engine_refusal(
        [&] { drawn(windows(changes) + both() + five(), cat(kSeen, more)); });
    BOOST_TEST(said.find(part) != std::string::npos, said);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(context_windows, WindowFixture)

BOOST_AUTO_TEST_CASE(a_picture_is_drawn_in_windows_that_move_from_step_to_step) {
  check(drawn(windows(R"("context_schedule": "standard_uniform")"), kSeen), "width");
}

BOOST_AUTO_TEST_CASE(windows_go_around_with_strides_repeated_noise_and_retained_rows) {
  check(drawn(ring(), kRing), "ring");
}

BOOST_AUTO_TEST_CASE(items_of_a_batch_are_seen_some_at_a_time) {
  const char* changes =
      R"("model": ["windows", 0], "latent_image": ["five", 0], "steps": 3, "positive": ["both", 0])";
  check(drawn(windows(R"("dim": 0, "context_length": 2, "fuse_method": "overlap-linear",
                         "split_conds_to_windows": true)") +
                  five() + both(),
              changes),
        "divided");
  const std::string area =
      R"("part": {"class_type": "ConditioningSetAreaPercentage", "inputs": {"conditioning": ["one", 0],
           "width": 0.5, "height": 0.67, "x": 0.5, "y": 0.34, "strength": 0.7}},
         "less": {"class_type": "ConditioningSetAreaStrength", "inputs": {"conditioning": ["three", 0], "strength": 0.5}},
         "both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["part", 0], "conditioning_2": ["less", 0]}}, )";
  check(drawn(windows(R"("dim": 0, "context_length": 2, "context_schedule": "batched",
                         "causal_window_fix": false)") +
                  five() + area,
              changes),
        "areas");
}

BOOST_AUTO_TEST_CASE(what_is_seen_beside_the_picture_is_cut_as_it_is) {
  write_wider_model("canny");
  const std::string nodes = cat(
      R"("wider": {"class_type": "UNETLoader", "inputs": {"unet_name": "canny.safetensors", "weight_dtype": "default"}},
         "shown": {"class_type": "test.conditioning", "inputs": {"path": ")",
      (here() / "concat_goldens.safetensors").string(),
      R"(", "prefix": "in.image", "option": ""}}, )",
      windows(R"("fuse_method": "flat", "cond_retain_index_list": "0")", "wider"));
  check(drawn(nodes, R"("model": ["windows", 0], "positive": ["shown", 0], "cfg": 1, "steps": 3)"),
        "beside");
}

BOOST_AUTO_TEST_CASE(a_window_that_holds_all_changes_nothing) {
  BOOST_TEST(drawn(windows(R"("context_length": 8, "context_overlap": 9, "freenoise": true)"),
                   kSeen) == drawn("", ""));
}

BOOST_AUTO_TEST_CASE(windows_that_cannot_be_are_refused) {
  check_refused(R"("dim": 4)", "axes are numbered 0 to 3");
  check_refused(R"("dim": 1, "context_length": 2)", "dim 1, the 4 channels");
  check_refused(R"("context_overlap": 4)", "none comes further");
  check_refused(R"("latent_retain_index_list": "0, x")", "latent_retain_index_list is '0, x'");
  check_refused(R"("latent_retain_index_list": "5")", "is to retain place 5");
  check_refused(
      R"("context_length": 3, "context_stride": 3, "context_schedule": "standard_uniform")",
      "leave an axis of 8");
  const std::string said = heddle::test::engine_refusal([&] {
    drawn(windows("") +
              R"("part": {"class_type": "ConditioningSetAreaPercentage", "inputs": {"conditioning":
                   ["one", 0], "width": 0.5, "height": 0.5, "x": 0, "y": 0, "strength": 1.0}}, )",
          R"("model": ["windows", 0], "positive": ["part", 0])");
  });
  BOOST_TEST(said.find("counts in an area") != std::string::npos, said);
}

// Of texts whose shapes are known; the other conditionings are only known when they are made.
BOOST_AUTO_TEST_CASE(what_windows_ask_of_the_model_is_told_before) {
  const auto flow = [](const std::string& nodes, const std::string& changes) {
    return cat(
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": ["loader", 1]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": ["loader", 1]}},
      "both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["one", 0],
        "conditioning_2": ["two", 0]}}, )",
        R"("empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}}, )",
        nodes, five(), "\"out\": ", ksampler(changes), ", ", kLook, "}");
  };
  const std::string divided = windows(
      R"("model": ["loader", 0], "dim": 0, "context_length": 2, "split_conds_to_windows": true)");
  const std::string rows = windows(R"("model": ["loader", 0], "dim": 2, "context_length": 3,
      "context_schedule": "standard_uniform", "context_stride": 2)");
  for (const std::string& text :
       {flow(rows, R"("model": ["windows", 0], "steps": 3)"),
        flow(divided, R"("model": ["windows", 0], "latent_image": ["five", 0],
                         "positive": ["both", 0], "steps": 2)")}) {
    heddle::Engine::Data data(told_options());
    heddle::test::check_inference(data, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
