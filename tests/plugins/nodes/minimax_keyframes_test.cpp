// MiniMax H3 from pictures and a text to the latents of a video and its sound, with ComfyUI's
// nodes, over models whose weights follow from their names, against PyTorch
// (../goldens/make_minimax_keyframe_goldens.py); divided over devices, the same bytes.
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/h3_files.h"

namespace heddle::test {
namespace {

using engine::cat;

constexpr std::uint64_t kKeyframeBudget = 28 << 20;

struct MinimaxKeyframes : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/minimax_keyframes";
  TensorFile expected{goldens / "expected.safetensors"};

  MinimaxKeyframes() {
    input_dir = goldens;
    add("diffusion_models/whole", seeded_model("whole", false, "minimax"));
    add("text_encoders/qwen3vl_32b", seeded_model("text", false, "minimax_keyframes"));
    add("vae/h3", h3_video_tensors(false));
  }
  // more: of MiniMaxH3ImageToVideo; guide: of MiniMaxH3AddGuide, or nothing; hints: of the sampler.
  static std::string flow(const std::string& more, const std::string& guide = "",
                          const std::string& hints = "") {
    const std::string guided =
        guide.empty()
            ? ""
            : cat(R"("guided": {"class_type": "MiniMaxH3AddGuide", "inputs": {"positive": ["told", 0], "latent": ["told", 1], "vae": ["vae", 0], )",
                  guide, "}}, ");
    return cat(
        "{", loaded("whole"), ", ", guided,
        R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_32b.safetensors", "type": "minimax", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "h3.safetensors"}},
      "a": {"class_type": "LoadImage", "inputs": {"image": "one.png"}},
      "b": {"class_type": "LoadImage", "inputs": {"image": "two.png"}},
      "told": {"class_type": "MiniMaxH3ImageToVideo", "inputs": {"clip": ["clip", 0], "vae": ["vae", 0],
        "prompt": "a red fox in the snow, soft light", "width": 96, "height": 64, "length": 22)",
        more, R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["told", 0]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": ["model", 0], "conditioning": [")",
        guide.empty() ? "told" : "guided", R"(", 0]}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.95, 0.7, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["told", 1])",
        hints, R"(}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["parts", 0], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}},
      "see": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})");
  }
  static constexpr const char* kBoth = R"(, "first_frame": ["a", 0], "last_frame": ["b", 0])";
  static constexpr const char* kLast = R"(, "last_frame": ["b", 0])";

  static Results run(Engine& engine, const std::string& text, std::vector<std::string> keep) {
    return engine.start(engine.parse(text), {{}, std::move(keep)}).wait();
  }
  void equals_pytorch(const std::string& text, const std::string& wanted) {
    Engine engine(options_for({"cpu:0"}));
    const Results results =
        run(engine, text, {"first.value", "parts.video_latent", "parts.audio_latent"});
    const double states = relative_error(results.floats("first.value", "cross_attn"),
                                         expected.floats(wanted + ".states"));
    BOOST_TEST(states < 1e-4, wanted << ": states, relative error " << states);
    for (const std::string part : {"video", "audio"}) {
      const double error = relative_error(results.floats("parts." + part + "_latent", "samples"),
                                          expected.floats(wanted + "." + part));
      BOOST_TEST_MESSAGE(wanted << "." << part << ": " << -20 * std::log10(error) << " dB");
      BOOST_TEST(error < std::pow(10.0, -70.0 / 20), wanted << "." << part << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax_keyframes, MinimaxKeyframes)

BOOST_AUTO_TEST_CASE(first_and_last_pictures_equal_pytorch) { equals_pytorch(flow(kBoth), "both"); }

BOOST_AUTO_TEST_CASE(a_last_picture_and_a_guide_equal_pytorch, *boost::unit_test::label("long")) {
  equals_pytorch(flow(kLast), "last");
  equals_pytorch(flow(kLast, R"("frame_idx": -15, "image": ["a", 0])"), "guided");
}

BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes, *boost::unit_test::label("long")) {
  hold([](const std::string& hints) { return flow(kBoth, "", hints); }, {"layers"},
       {"sequence", "tensor"}, kKeyframeBudget, 24 * 7 * 4 * 6);
}

BOOST_AUTO_TEST_CASE(calls_with_pictures_are_told_before_a_run) {
  Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, flow(kLast, R"("frame_idx": 7, "image": ["a", 0])"));
}

BOOST_AUTO_TEST_CASE(what_is_not_shown_is_refused) {
  Engine engine(options_for({"cpu:0"}));
  const auto says = [&](const std::string& text, const char* words) {
    const std::string refusal = engine_refusal([&] { run(engine, text, {"guided.positive"}); });
    BOOST_TEST(refusal.find(words) != std::string::npos,
               "'" << words << "' is not in: " << refusal);
  };
  says(flow("", R"("frame_idx": 22, "image": ["a", 0])"), "are not within the 22");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
