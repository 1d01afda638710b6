// WanVaceToVideo and what VACE draws of it, with ComfyUI's nodes, against PyTorch
// (../goldens/make_wan_vace_goldens.py).
#include <algorithm>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct WanVaceNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_vace/expected.safetensors";
  TensorFile expected{golden};

  WanVaceNodes() {
    add("diffusion_models/wan2.1_vace_1.3B_fp16", seeded_model("flow", false, "wan_vace"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  std::string nodes() const {
    const auto given = [&](const char* type, const char* name) {
      return cat(R"({"class_type": "test.)", type, R"(", "inputs": {"path": ")", golden.string(),
                 R"(", "name": ")", name, R"("}})");
    };
    return cat(
        loaded("wan2.1_vace_1.3B_fp16"), R"(, "one": )", text("one", golden), R"(, "two": )",
        text("two", golden), R"(, "pictures": )", given("image", "pictures"), R"(, "masks": )",
        given("mask", "masks"),
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}})");
  }
  // A node of 48 x 32 behind the texts, or behind another node.
  static std::string vace(const std::string& name, int length, const std::string& strength,
                          const std::string& more, const char* behind = nullptr) {
    const std::string positive = behind ? cat(R"([")", behind, R"(", 0])") : R"(["one", 0])",
                      negative = behind ? cat(R"([")", behind, R"(", 1])") : R"(["two", 0])";
    return cat(", \"", name, R"(": {"class_type": "WanVaceToVideo", "inputs": {"positive": )",
               positive, R"(, "negative": )", negative,
               R"(, "vae": ["vae", 0], "width": 48, "height": 32, "batch_size": 1, "length": )",
               std::to_string(length), R"(, "strength": )", strength, more, "}}");
  }
  static std::string drawn(const std::string& nodes, const std::string& positive,
                           const std::string& negative, const std::string& latent,
                           const std::string& hints = "") {
    return cat("{", nodes, R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0],
        "seed": 7, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": )",
               positive, R"(, "negative": )", negative, R"(, "latent_image": )", latent,
               R"(, "denoise": 1.0})", hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  static std::string drawn_by(const std::string& nodes, const std::string& hints = "") {
    return drawn(nodes, R"(["node", 0])", R"(["node", 1])", R"(["node", 2])", hints);
  }
  std::string followed(const std::string& hints = "") const {
    return drawn_by(nodes() + vace("node", 9, "1.0", kFollowed), hints);
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  void compare_video(const std::string& flow, const std::string& name) {
    compare(run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples"), name);
  }
  heddle::Results told(const std::string& node) {
    return run_whole(
        cat("{", nodes(), node,
            R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", 1]}},
        "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value", "node.latent"});
  }

  static constexpr const char* kFollowed =
      R"(, "control_video": ["pictures", 0], "control_masks": ["masks", 0])";
  static constexpr const char* kShown = R"(, "reference_image": ["pictures", 0])";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_vace_nodes, WanVaceNodes)

BOOST_AUTO_TEST_CASE(contexts_equal_pytorch) {
  const heddle::Results video = told(vace("node", 9, "1.0", kFollowed));
  compare(video.floats("entry.value", "vace_frames.0"), "frames.followed");
  compare(video.floats("entry.value", "vace_mask.0"), "cells.followed");
  const heddle::Results picture = told(vace("node", 5, "0.5", kShown));
  compare(picture.floats("entry.value", "vace_frames.0"), "frames.shown");
  compare(picture.floats("entry.value", "vace_mask.0"), "cells.shown");
  BOOST_TEST(picture.floats("node.latent", "samples") == std::vector<float>(16 * 3 * 4 * 6, 0.0f));
}

BOOST_AUTO_TEST_CASE(a_video_that_is_followed_and_drawn_anew_in_part_equals_pytorch) {
  compare_video(followed(), "followed.latent");
}

// Its frame is trimmed off what is drawn.
BOOST_AUTO_TEST_CASE(a_video_of_what_a_picture_shows_equals_pytorch) {
  std::string flow = drawn_by(nodes() + vace("node", 5, "0.5", kShown));
  compare_video(flow, "shown.latent");
  flow.replace(flow.find(R"("look")"), std::string::npos,
               R"("cut": {"class_type": "TrimVideoLatent", "inputs": {"samples": ["out", 0],
      "trim_amount": ["node", 3]}}, "look": {"class_type": "test.look", "inputs": {"value": ["cut", 0]}}})");
  const std::vector<float> left = run_whole(flow, {"cut.LATENT"}).floats("cut.LATENT", "samples"),
                           all = expected.floats("shown.latent");
  std::vector<float> behind;
  for (std::size_t c = 0; c < 16; ++c)
    behind.insert(behind.end(), all.begin() + std::ptrdiff_t((3 * c + 1) * 24),
                  all.begin() + std::ptrdiff_t((3 * c + 3) * 24));
  BOOST_TEST(relative_error(left, behind) < kTolerance);
}

BOOST_AUTO_TEST_CASE(two_contexts_count_together) {
  compare_video(
      drawn_by(nodes() + vace("first", 9, "1.0", kFollowed) + vace("node", 9, "0.75", "", "first")),
      "chained.latent");
}

BOOST_AUTO_TEST_CASE(without_a_context_all_is_drawn_anew) {
  compare_video(
      drawn(
          cat(nodes(),
              R"(, "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 48, "height": 32, "length": 9, "batch_size": 1}})"),
          R"(["one", 0])", R"(["two", 0])", R"(["empty", 0])"),
      "free.latent");
}

BOOST_AUTO_TEST_CASE(dividing_vace_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}), followed());
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                followed(cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(alone, divided(mode)), mode);
  const double error = relative_error(divided("sequence"), alone);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, 8 << 20), followed())), "little memory");
}

// Of texts and a picture that are known before.
BOOST_AUTO_TEST_CASE(contexts_are_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  constexpr const char* kPicture =
      R"(, "told": {"class_type": "EmptyImage", "inputs": {"width": 28, "height": 20, "batch_size": 1, "color": 5}})";
  std::string known = nodes();
  for (const char* name : {"one", "two"}) {
    const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
    known.insert(known.find(begin) + begin.size(), "given_");
  }
  for (const char* port : {"control_video", "reference_image"}) {
    const std::string more = cat(", \"", port, R"(": ["told", 0])");
    check_inference(told, drawn_by(cat(known, kPicture, vace("first", 5, "1.0", more),
                                       vace("node", 5, "0.5", more, "first"))));
  }
}

BOOST_AUTO_TEST_CASE(contexts_that_do_not_go_together_are_refused) {
  const auto refusal = [&](const std::string& flow) {
    return engine_refusal([&] { run_whole(flow, {}); });
  };
  const std::string other = refusal(
      drawn_by(nodes() + vace("first", 9, "1.0", kFollowed) + vace("node", 5, "1.0", "", "first")));
  for (const char* word : {"context 0", "3 frames", "2 frames of 4x6"})
    BOOST_TEST(other.find(word) != std::string::npos, other);
  const std::string odd = nodes() + vace("node", 9, "1.0", kFollowed);
  std::string narrow = odd;
  narrow.replace(narrow.find(R"("width": 48)"), 11, R"("width": 44)");
  BOOST_TEST(!refusal(drawn_by(narrow)).empty());
}

BOOST_AUTO_TEST_SUITE_END()
