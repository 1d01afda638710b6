// LTX 2 from texts to the latents of a video and its sound, with ComfyUI's nodes, over models whose
// weights follow from their names, against PyTorch (../goldens/make_ltx2_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

// Of a device that does not hold all weights.
constexpr std::uint64_t kBudget = 3 << 20;

struct Ltx2Workflow : PlacedFixture {
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/ltx2/expected.safetensors";
  TensorFile expected{golden};

  Ltx2Workflow() { add("diffusion_models/flow", seeded_model("flow", false, "ltx2")); }

  // Of 2 frames of 2 x 3 places and 5 of sound; `masks`: of both, or of none.
  std::string latents(bool masks, int items = 1) const {
    const std::string batch = std::to_string(items);
    std::string nodes =
        R"("pictures": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 96, "height": 64, "length": 9, "batch_size": )" +
        batch +
        R"(}}, "sound": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 40, "batch_size": )" +
        batch + "}}, ";
    if (masks)
      nodes +=
          R"("a": {"class_type": "SolidMask", "inputs": {"value": 0.0, "width": 3, "height": 2}},
      "b": {"class_type": "SolidMask", "inputs": {"value": 1.0, "width": 3, "height": 2}},
      "a_seen": {"class_type": "MaskToImage", "inputs": {"mask": ["a", 0]}},
      "b_seen": {"class_type": "MaskToImage", "inputs": {"mask": ["b", 0]}},
      "seen": {"class_type": "ImageBatch", "inputs": {"image1": ["a_seen", 0], "image2": ["b_seen", 0]}},
      "mask": {"class_type": "ImageToMask", "inputs": {"image": ["seen", 0], "channel": "red"}},
      "masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["pictures", 0], "mask": ["mask", 0]}},
      "kept": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["sound", 0], "mask": ["a", 0]}}, )";
    return nodes + R"("both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": [")" +
           (masks ? "masked" : "pictures") + R"(", 0], "audio_latent": [")" +
           (masks ? "kept" : "sound") + R"(", 0]}})";
  }
  static constexpr const char* kEnds =
      R"("parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["out", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})";
  std::string flow(bool masks, bool apart = false) const {
    const char* guidance =
        apart ? R"("LTXVDualCFGGuider", "inputs": {"video_cfg": 1.0, "audio_cfg": 5.0, )"
              : R"("CFGGuider", "inputs": {"cfg": 3.0, )";
    return heddle::engine::cat(
        "{", loaded("flow"), R"(, "one": )", text("one", golden), R"(, "two": )",
        text("two", golden), ", ", latents(masks),
        R"(, "told": {"class_type": "LTXVConditioning", "inputs": {"frame_rate": 24.0, "positive": ["one", 0], "negative": ["two", 0]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": )",
        guidance,
        R"("model": ["model", 0], "positive": ["told", 0], "negative": ["told", 1]}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.75, 0.5, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["both", 0]}}, )",
        kEnds);
  }
  // By KSampler, into the node "parts". `made`: the node "both".
  std::string drawn(const std::string& hints, const std::string& made,
                    const std::string& sampler = "euler") const {
    return heddle::engine::cat(
        loaded("flow"), R"(, "one": )", text("one", golden), R"(, "two": )", text("two", golden),
        ", ", made,
        R"(, "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": ")",
        sampler,
        R"(", "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0],
        "latent_image": ["both", 0], "denoise": 1.0})",
        hints,
        R"(}, "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}})");
  }
  heddle::Results run_drawn(const std::string& made, const std::string& sampler = "euler") {
    return run_whole(
        heddle::engine::cat(
            "{", drawn("", made, sampler),
            R"(, "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})"),
        {"parts.video_latent", "parts.audio_latent"});
  }
  void equals_pytorch(bool masks, const std::string& wanted, bool apart = false) {
    const heddle::Results results =
        run_whole(flow(masks, apart), {"parts.video_latent", "parts.audio_latent"});
    for (const std::string part : {"video", "audio"}) {
      const std::vector<float> made = results.floats("parts." + part + "_latent", "samples"),
                               there = expected.floats(wanted + "." + part);
      BOOST_TEST_REQUIRE(made.size() == there.size());
      double error = 0, size = 0;
      for (std::size_t i = 0; i < made.size(); ++i) {
        error += double(made[i] - there[i]) * double(made[i] - there[i]);
        size += double(there[i]) * double(there[i]);
      }
      const double decibels = 10 * std::log10(size / std::max(error, 1e-30));
      BOOST_TEST_MESSAGE(wanted << "." << part << ": " << decibels << " dB");
      BOOST_TEST((size == 0 ? error == 0 : decibels >= 70),
                 wanted << "." << part << ": " << decibels << " dB");
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_workflows, Ltx2Workflow)

BOOST_AUTO_TEST_CASE(from_texts_to_the_latents_of_both_equals_pytorch) {
  equals_pytorch(false, "flow");
}

// The pictures by 1, for which a CFGGuider would leave the negative texts out.
BOOST_AUTO_TEST_CASE(guidance_of_both_apart_equals_pytorch) {
  equals_pytorch(false, "apart", true);
}

BOOST_AUTO_TEST_CASE(noise_masks_of_both_equal_pytorch) { equals_pytorch(true, "masked"); }

// Of the video, then of its sound: 2 items of as many numbers each.
BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes, *boost::unit_test::label("long")) {
  constexpr std::size_t kNumbers = 2 * 128 * 2 * 3;
  const std::string small =
      R"("pictures": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 96, "height": 64, "length": 1, "batch_size": 2}},
      "sound": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 2}},
      "both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["pictures", 0], "audio_latent": ["sound", 0]}})";
  for (const char* part : {"0", "1"})
    hold(
        [&](const std::string& hints) {
          return heddle::engine::cat("{", drawn(hints, small),
                                     R"(, "out": {"class_type": "LatentFromBatch", "inputs": {
        "samples": ["parts", )",
                                     part, R"(], "batch_index": 0, "length": 2}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
        },
        {"layers", "data", "cfg"}, {}, kBudget, kNumbers);
}

// Samplers that draw noise as they go, that keep slopes, and that take two evaluations.
BOOST_AUTO_TEST_CASE(other_samplers_take_both) {
  for (const char* sampler : {"euler_ancestral", "dpmpp_2m", "res_multistep", "heun"}) {
    const heddle::Results results = run_drawn(latents(false), sampler);
    for (const char* part : {"parts.video_latent", "parts.audio_latent"})
      for (const float number : results.floats(part, "samples"))
        BOOST_TEST_REQUIRE(std::isfinite(number), sampler);
  }
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  for (const bool masks : {false, true}) {
    std::string whole = heddle::engine::cat(
        "{", drawn("", latents(masks)),
        R"(, "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}}})");
    for (const char* name : {"one", "two"}) {
      const std::string node = text(name, golden);
      const std::size_t at = whole.find(node);
      BOOST_TEST_REQUIRE((at != std::string::npos));
      whole.replace(
          at, node.size(),
          R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 80, "pooled_width": 0, "seed": 1}})");
    }
    heddle::Engine::Data told(options);  // a node that is cached makes no calls
    check_inference(told, whole);
  }
}

// 25 frames of a latent a second, rounded up, where the autoencoder does not say
// otherwise: this one, of 128 channels, is for pictures.
BOOST_AUTO_TEST_CASE(an_empty_latent_of_sound_is_as_long_as_its_frames) {
  add("vae/ltxv", seeded_model("flow", false, "ltxv_vae"));
  const auto length = [&](int frames, const std::string& rate) {
    return run_whole(
               heddle::engine::cat(
                   R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ltxv.safetensors"}},
      "out": {"class_type": "LTXVEmptyLatentAudio", "inputs": {"frames_number": )",
                   frames, R"(, "frame_rate": )", rate,
                   R"(, "batch_size": 2, "audio_vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})"),
               {"out.Latent"})
               .floats("out.Latent", "samples")
               .size() /
           (2u * 128 * 16);
  };
  BOOST_TEST(length(121, "25.0") == 121u);
  BOOST_TEST(length(9, "24") == 10u);
  BOOST_TEST(length(5, "10.0") == 13u);
}

BOOST_AUTO_TEST_CASE(a_latent_of_one_of_them_is_refused) {
  const std::string refusal = engine_refusal([&] {
    run_drawn(
        R"("both": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 96, "height": 64, "length": 9, "batch_size": 1}})");
  });
  BOOST_TEST(refusal.find("Link LTXVConcatAVLatent") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_SUITE_END()
