// LTX 2, 2.3 and 2.5 whose tokens, of the video and of its sound, are divided among devices.
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/resized_models.h"

namespace heddle::test {
namespace {

using engine::cat;

struct PlacedLtx2 : PlacedFixture {
  // Of 2.0 texts are projected, each stream's of its own 40 numbers; later ones read as many as
  // they are wide.
  PlacedLtx2() {
    std::vector<FileTensor> texts;
    for (const std::int64_t width : {64, 80})
      for (const auto& [name, tokens] : {std::pair{"one", 9}, std::pair{"two", 5}})
        texts.push_back(seeded_tensor(cat("in.", name, width, ".cross_attn"), {1, tokens, width}));
    write_safetensors(folder / "texts.safetensors", texts);
  }
  // Of 2.3 ("three") or 2.5 ("five"), of four heads, gates of them, and the channels of the nodes'
  // latents.
  void add_later(const char* kind, const char* golden, const std::string& more) const {
    std::vector<FileTensor> tensors =
        resized(seeded_model(kind, false, golden), {{16, 128}, {12, 128}});
    for (FileTensor& tensor : tensors)
      if (tensor.name.find("to_gate_logits") != std::string::npos)
        tensor = resized({tensor}, {{2, 4}}).front();
    std::string config;
    for (const char c : cat(R"({"transformer": {"num_attention_heads": 4, )",
                            R"("audio_num_attention_heads": 4, )", more, "}}"))
      config += c == '"' ? "\\\"" : std::string(1, c);
    std::filesystem::create_directories(folder / "models/diffusion_models");
    write_safetensors(folder / "models/diffusion_models" / cat(kind, ".safetensors"), tensors,
                      FileMetadata{{"config", config}});
  }
  // Of 3 frames of 5 x 3 places and 7 tokens of sound, odd numbers: "out" and "sound_out".
  std::string drawn(const char* model, int width, const std::string& hints) const {
    return cat(
        "{", loaded(model), R"(, "one": )", text(cat("one", width)), R"(, "two": )",
        text(cat("two", width)),
        R"(, "pictures": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 160, "height": 96, "length": 17, "batch_size": 2}},
      "sound": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 56, "batch_size": 2}},
      "both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["pictures", 0], "audio_latent": ["sound", 0]}},
      "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["both", 0], "denoise": 1.0})",
        hints,
        R"(}, "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["parts", 0], "batch_index": 0, "length": 2}},
      "sound_out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["parts", 1], "batch_index": 0, "length": 2}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["sound_out", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  void hold_both(const char* model, int width) const {
    hold_tokens([&](const std::string& hints) { return drawn(model, width, hints); }, 4,
                {"out.LATENT", "sound_out.LATENT"});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2_placed, PlacedLtx2)

BOOST_AUTO_TEST_CASE(tokens_of_both_streams_are_divided) {
  add("diffusion_models/two", seeded_model("flow", false, "ltx2"));
  hold_both("two", 80);
}

// The text's keys and values are made in each step, by parts.
BOOST_AUTO_TEST_CASE(tokens_of_later_models_are_divided) {
  add_later("three", "ltx2", R"("rope_type": "interleaved")");
  hold_both("three", 64);
  add_later("five", "ltx25",
            R"("rope_type": "split", "ff_bias": false, "use_keyframes_abs_pos_embedding": true)");
  hold_both("five", 64);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
