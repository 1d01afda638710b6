// Guides of LTX 2 (LTXVAddGuide) and told voices (LTXVReferenceAudio), with ComfyUI's nodes, over a
// tiny model whose weights follow from their names, against PyTorch
// (../goldens/make_ltx2_guide_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct Ltx2Guides : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx2_guides/expected.safetensors";
  TensorFile expected{golden};

  Ltx2Guides() {
    std::vector<FileTensor> all = seeded_model("transformer", false, "ltx2_whole");
    add_part(all, "vae", "vae.", "ltx2_whole");
    add_part(all, "vae", "audio_vae.", "ltx2_audio");
    add_part(all, "vocoder", "vocoder.", "ltx2_audio");
    std::filesystem::create_directories(folder / "models/checkpoints");
    write_safetensors(
        folder / "models/checkpoints/ltx2.safetensors", all,
        {{"config",
          escaped(R"({"transformer": {"num_attention_heads": 4, "audio_num_attention_heads": 4},
                      "audio_vae": {"model": {"params": {"ddconfig": {"mel_bins": 16}}},
                        "preprocessing": {"stft": {"filter_length": 256, "hop_length": 40}}}})")}});
    add_lora();
  }
  // As a header of JSON holds it.
  static std::string escaped(const std::string& config) {
    std::string out;
    for (const char c : config) out += c == '"' ? "\\\"" : c == '\n' ? " " : std::string(1, c);
    return out;
  }
  static void add_part(std::vector<FileTensor>& all, const char* model, const std::string& prefix,
                       const char* golden) {
    for (FileTensor& tensor : seeded_model(model, false, golden)) {
      if (tensor.name.ends_with("std-of-means"))
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  }
  // An IC-LoRA that changes nothing, for pictures half as wide and high as the video.
  void add_lora() const {
    constexpr std::int64_t kWidth = 64;
    const auto zeros = [](const char* name, std::vector<std::int64_t> shape) {
      return FileTensor{name, "F32", shape,
                        std::string(std::size_t(4 * shape[0] * shape[1]), char(0))};
    };
    std::filesystem::create_directories(folder / "models/loras");
    write_safetensors(
        folder / "models/loras/small.safetensors",
        {zeros("diffusion_model.transformer_blocks.0.attn1.to_q.lora_A.weight", {2, kWidth}),
         zeros("diffusion_model.transformer_blocks.0.attn1.to_q.lora_B.weight", {kWidth, 2})},
        {{"reference_downscale_factor", "2"}});
  }

  std::string tensor(const char* node, const char* type, const char* name,
                     const char* more = "") const {
    return cat("\"", node, R"(": {"class_type": ")", type, R"(", "inputs": {"name": ")", name,
               R"(", "path": ")", golden.string(), "\"", more, "}}");
  }
  // Nodes that make "both" of "pictures" and "sound", whose models, conditionings and hints of the
  // sampler are told, drawn to "parts", of which "out" is one.
  std::string drawn(const std::string& nodes, const char* model, const char* texts,
                    const std::string& sizes, const char* hints, const char* part) const {
    return cat(
        R"({"files": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "ltx2.safetensors"}},
      "one": )",
        text("one", golden), R"(, "two": )", text("two", golden), ", ", sizes, ", ", nodes,
        R"(, "told": {"class_type": "LTXVConditioning", "inputs": {"frame_rate": 24.0, "positive": [")",
        texts, R"(", )", texts == std::string("voiced") ? "1" : "0", R"(], "negative": [")", texts,
        R"(", )", texts == std::string("voiced") ? "2" : "1",
        R"(]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": [")",
        model,
        R"(", 0], "positive": ["told", 0], "negative": ["told", 1], "cfg": 3.0}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.75, 0.5, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["both", 0]})",
        hints,
        R"(}, "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "crop": {"class_type": "LTXVCropGuides", "inputs": {"positive": ["told", 0], "negative": ["told", 1], "latent": ["parts", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": [)",
        part, R"(], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  static std::string latents(int width, int height, int length, int sound) {
    return cat(
        R"("pictures": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": )", width,
        R"(, "height": )", height, R"(, "length": )", length,
        R"(, "batch_size": 1}}, "sound": {"class_type": "EmptyLatentImage", "inputs": {"width": 32, "height": )",
        8 * sound, R"(, "batch_size": 1}})");
  }
  std::string guided(const char* hints = "", const char* part = R"("crop", 2)") const {
    return drawn(
        cat(R"("small": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["files", 0], "lora_name": "small.safetensors", "strength_model": 1.0}},
      "size": {"class_type": "GetICLoRAParameters", "inputs": {"iclora_model": ["small", 0]}}, )",
            tensor("nine", "test.image", "pictures"), ", ", tensor("seen", "test.mask", "weights"),
            R"(, "first": {"class_type": "ImageFromBatch", "inputs": {"image": ["nine", 0], "batch_index": 0, "length": 1}},
      "a": {"class_type": "LTXVAddGuide", "inputs": {"positive": ["one", 0], "negative": ["two", 0], "vae": ["files", 2],
        "latent": ["pictures", 0], "image": ["nine", 0], "frame_idx": 0, "strength": 0.75,
        "attention_mask": ["seen", 0], "iclora_parameters": ["size", 0]}},
      "b": {"class_type": "LTXVAddGuide", "inputs": {"positive": ["a", 0], "negative": ["a", 1], "vae": ["files", 2],
        "latent": ["a", 2], "image": ["first", 0], "frame_idx": -1, "strength": 0.5}},
      "both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["b", 2], "audio_latent": ["sound", 0]}})"),
        "small", "b", latents(128, 128, 17, 18), hints, part);
  }
  std::string voiced(const char* hints = "", const char* part = R"("parts", 0)",
                     const char* scale = "2.0") const {
    return drawn(
        cat(R"("audio_vae": {"class_type": "LTXVAudioVAELoader", "inputs": {"ckpt_name": "ltx2.safetensors"}}, )",
            tensor("voice", "test.sound", "voice.waveform", R"(, "rate": 16000)"),
            R"(, "voiced": {"class_type": "LTXVReferenceAudio", "inputs": {"model": ["files", 0], "positive": ["one", 0],
        "negative": ["two", 0], "reference_audio": ["voice", 0], "audio_vae": ["audio_vae", 0],
        "identity_guidance_scale": )",
            scale, R"(, "start_percent": 0.0, "end_percent": 0.9}},
      "both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["pictures", 0], "audio_latent": ["sound", 0]}})"),
        "voiced", "voiced", latents(96, 64, 9, 10), hints, part);
  }

  void compare(const std::string& flow, const char* wanted) {
    const std::vector<float> made = run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
    const double decibels = -20 * std::log10(relative_error(made, expected.floats(wanted)));
    BOOST_TEST_MESSAGE(wanted << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, wanted << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_guides, Ltx2Guides)

// Small pictures by a mask and a strength, another one by a strength.
BOOST_AUTO_TEST_CASE(a_video_that_passes_pictures_and_its_sound_equal_pytorch) {
  compare(guided(), "guided.video");
  compare(guided("", R"("parts", 1)"), "guided.audio");
}

BOOST_AUTO_TEST_CASE(a_video_in_a_told_voice_equals_pytorch) {
  compare(voiced(), "voice.video");
  compare(voiced("", R"("parts", 1)"), "voice.audio");
}

BOOST_AUTO_TEST_CASE(a_voice_and_the_guidance_towards_it_count) {
  const auto drawn = [&](const std::string& flow) {
    return run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
  };
  const std::vector<float> plain = drawn(voiced("", R"("parts", 1)", "0.0"));
  BOOST_TEST(relative_error(plain, expected.floats("voice.audio")) > 10 * kTolerance);
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_bytes, *boost::unit_test::label("long")) {
  hold([&](const std::string& hints) { return guided(hints.c_str()); }, {"layers", "cfg"}, {},
       14 << 20, 128 * 3 * 16);
  hold([&](const std::string& hints) { return voiced(hints.c_str(), R"("parts", 1)"); },
       {"layers", "cfg"}, {}, 6 << 20, 4 * 10 * 4);
}

// Tokens of guides have levels of their own, and count by weights; those of a voice are before the
// sound's.
BOOST_AUTO_TEST_CASE(tokens_of_guides_and_voices_are_divided, *boost::unit_test::label("long")) {
  hold_tokens([&](const std::string& hints) { return guided(hints.c_str()); });
  hold_tokens([&](const std::string& hints) { return voiced(hints.c_str(), R"("parts", 1)"); });
}

BOOST_AUTO_TEST_CASE(calls_of_a_voice_are_told_before_a_run) {
  std::string flow = voiced();
  const auto put = [&](const std::string& from, const std::string& to) {
    const std::size_t at = flow.find(from);
    BOOST_TEST_REQUIRE((at != std::string::npos), from);
    flow.replace(at, from.size(), to);
  };
  for (const char* name : {"one", "two"})
    put(text(name, golden),
        R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 48, "pooled_width": 0, "seed": 1}})");
  put(tensor("voice", "test.sound", "voice.waveform", R"(, "rate": 16000)"),
      R"("voice": {"class_type": "EmptyAudio", "inputs": {"duration": 0.3, "sample_rate": 16000, "channels": 2}},
      "coded": {"class_type": "LTXVAudioVAEEncode", "inputs": {"audio": ["voice", 0], "audio_vae": ["audio_vae", 0]}},
      "again": {"class_type": "VAEEncodeAudio", "inputs": {"audio": ["voice", 0], "vae": ["audio_vae", 0]}},
      "look_at_coded": {"class_type": "test.look", "inputs": {"value": ["coded", 0]}},
      "look_again": {"class_type": "test.look", "inputs": {"value": ["again", 0]}})");
  heddle::EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  heddle::Engine::Data told(options);
  check_inference(told, flow);
}

// A model of LTX-Video hears nothing.
BOOST_AUTO_TEST_CASE(a_voice_for_a_model_without_sound_is_refused) {
  add("diffusion_models/flow", seeded_model("flow", false, "ltxv"));
  std::string flow = voiced();
  const auto put = [&](const std::string& from, const std::string& to) {
    const std::size_t at = flow.find(from);
    BOOST_TEST_REQUIRE((at != std::string::npos), from);
    flow.replace(at, from.size(), to);
  };
  put(R"("model": ["files", 0], "positive": ["one", 0])",
      R"("model": ["silent", 0], "positive": ["one", 0])");
  put(R"("latent_image": ["both", 0])", R"("latent_image": ["pictures", 0])");
  put(R"("noise": {)",
      R"("silent": {"class_type": "UNETLoader", "inputs": {"unet_name": "flow.safetensors", "weight_dtype": "default"}}, "noise": {)");
  put(R"("samples": ["parts", 0])", R"("samples": ["drawn", 0])");
  const std::string refusal = engine_refusal([&] { run_whole(flow, {"out.LATENT"}); });
  BOOST_TEST(refusal.find("has a voice") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
