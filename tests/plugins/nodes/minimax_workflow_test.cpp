// MiniMax H3 from a text to the latents of a video and its sound, with ComfyUI's nodes, over a
// model whose weights follow from their names, against PyTorch
// (../goldens/make_minimax_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

// Of a device that does not hold all weights, which are 460 KiB, beside what a call computes: 140
// KiB, and 200 for a guided one.
constexpr std::uint64_t kMinimaxBudget = 1 << 19, kMinimaxGuidedBudget = 600 << 10;

std::vector<float> minimax_floats(const FileTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Adds half the product of the factors to the tensor `name`: row r of it to row to(r).
template <class To>
void merge_minimax(std::vector<FileTensor>& model, const std::string& name, const FileTensor& up,
                   const FileTensor& down, To&& to) {
  const auto found = std::ranges::find(model, name, &FileTensor::name);
  BOOST_TEST_REQUIRE((found != model.end()));
  const std::int64_t rank = up.shape[1], columns = down.shape[1];
  const std::vector<float> left = minimax_floats(up), right = minimax_floats(down);
  std::vector<float> values = minimax_floats(*found);
  for (std::int64_t row = 0; row < up.shape[0]; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t k = 0; k < rank; ++k)
        values.at(std::size_t(to(row) * columns + column)) +=
            0.5f * left[std::size_t(row * rank + k)] * right[std::size_t(k * columns + column)];
  found->bytes = bytes_of_floats(values);
}

struct MinimaxWorkflow : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/minimax/expected.safetensors";
  TensorFile expected{golden};

  MinimaxWorkflow() { add("diffusion_models/whole", seeded_model("whole", false, "minimax")); }

  static constexpr const char* kBoth =
      R"("both": {"class_type": "EmptyMiniMaxH3LatentAV", "inputs": {"width": 96, "height": 64, "length": 5}})";
  // The model, by the node "shifts" where that is told.
  std::string flow(const std::string& shifts, const std::string& model = "whole") const {
    return heddle::engine::cat(
        "{", loaded(model), ", ", shifts, R"("one": )", text("one", golden), ", ", kBoth,
        R"(, "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": [")",
        shifts.empty() ? "model" : "shifts", R"(", 0], "conditioning": ["one", 0]}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.95, 0.7, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["both", 0]}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["out", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})");
  }
  // By KSampler, into the node "parts"; guided away from the conditioning "two" where cfg says so.
  std::string drawn(const std::string& hints, const std::string& sampler = "euler",
                    const std::string& cfg = "1.0") const {
    return heddle::engine::cat(
        loaded("whole"), R"(, "one": )", text("one", golden), R"(, "two": )",
        cfg == "1.0" ? text("one", golden) : text("two"), ", ", kBoth,
        R"(, "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": )",
        cfg, R"(, "sampler_name": ")", sampler,
        R"(", "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0],
        "latent_image": ["both", 0], "denoise": 1.0})",
        hints,
        R"(}, "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}})");
  }
  // Video and sound, each by itself.
  void hold_parts(const std::string& cfg, std::initializer_list<const char*> same,
                  std::initializer_list<const char*> nearly, std::uint64_t budget) const {
    const std::pair<const char*, std::size_t> parts[] = {{"0", 24 * 2 * 4 * 6}, {"1", 32 * 2 * 8}};
    for (const auto& [part, numbers] : parts)
      hold(
          [&, number = part](const std::string& hints) {
            return heddle::engine::cat("{", drawn(hints, "euler", cfg),
                                       R"(, "out": {"class_type": "LatentFromBatch", "inputs": {
        "samples": ["parts", )",
                                       number, R"(], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
          },
          same, nearly, budget, numbers);
  }
  void equals_pytorch(const std::string& shifts, const std::string& wanted) {
    const heddle::Results results =
        run_whole(flow(shifts), {"parts.video_latent", "parts.audio_latent"});
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
      BOOST_TEST(decibels >= 70, wanted << "." << part << ": " << decibels << " dB");
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax_workflows, MinimaxWorkflow)

BOOST_AUTO_TEST_CASE(from_a_text_to_the_latents_of_both_equals_pytorch) {
  equals_pytorch("", "flow");
}

// Its attention is dense without BlockSparseAttention, whatever gates of a sparse one a file has.
BOOST_AUTO_TEST_CASE(files_of_fasth3_are_dense_by_themselves) {
  constexpr std::int64_t kInner = 60, kWidth = 48;
  std::vector<FileTensor> tensors = seeded_model("whole", false, "minimax");
  tensors.push_back(seeded_tensor("blocks.0.attn.to_gate_compress.weight", {kInner, kWidth}));
  add("diffusion_models/gated", tensors);
  const heddle::Results made =
      run_whole(flow("", "gated"), {"parts.video_latent", "parts.audio_latent"});
  BOOST_TEST(relative_error(made.floats("parts.video_latent", "samples"),
                            expected.floats("flow.video")) < 1e-5);
}

// Of several output heads a step takes those that it goes past, against PyTorch
// (../goldens/make_minimax_sparse_goldens.py).
BOOST_AUTO_TEST_CASE(output_heads_of_parallel_decoding_equal_pytorch) {
  constexpr std::int64_t kWidth = 48, kHeads = 8;
  std::vector<FileTensor> tensors = seeded_model("whole", false, "minimax");
  for (FileTensor& tensor : tensors)
    for (const char* head : {"final_layer.video_out", "final_layer.audio_out"}) {
      if (tensor.name == heddle::engine::cat(head, ".weight"))
        tensor = seeded_tensor(tensor.name, {kHeads * tensor.shape[0], kWidth});
      if (tensor.name == heddle::engine::cat(head, ".bias"))
        tensor = seeded_tensor(tensor.name, {kHeads * tensor.shape[0]});
    }
  add("diffusion_models/headed", tensors);
  const TensorFile heads(tests_folder() / "plugins/goldens/minimax_sparse/expected.safetensors");
  const heddle::Results made =
      run_whole(flow("", "headed"), {"parts.video_latent", "parts.audio_latent"});
  for (const std::string part : {"video", "audio"}) {
    const double decibels =
        -20 * std::log10(relative_error(made.floats("parts." + part + "_latent", "samples"),
                                        heads.floats("heads." + part)));
    BOOST_TEST_MESSAGE(part << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, part << ": " << decibels << " dB");
  }
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.starts_with("final_layer.audio_out");
  });
  tensors.push_back(seeded_tensor("final_layer.audio_out.weight", {32, kWidth}));
  tensors.push_back(seeded_tensor("final_layer.audio_out.bias", {32}));
  add("diffusion_models/uneven", tensors);
  const std::string refusal =
      engine_refusal([&] { run_whole(flow("", "uneven"), {"parts.video_latent"}); });
  BOOST_TEST(refusal.find("'final_layer.audio_out.weight'") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_CASE(other_shifts_equal_pytorch) {
  equals_pytorch(
      R"("shifts": {"class_type": "MiniMaxH3SigmaShift", "inputs": {"model": ["model", 0], "shift_video": 10.0, "shift_audio": 2.0}}, )",
      "moved");
}

// Sums over heads and tokens of a group come in another order than those of one device.
BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes) {
  hold_parts("1.0", {"layers"}, {"sequence", "tensor"}, kMinimaxBudget);
}

BOOST_AUTO_TEST_CASE(dividing_guided_calls_keeps_their_bytes) {
  write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.two.cross_attn", {1, 5, 40})});
  hold_parts("2.5", {"layers", "cfg"}, {}, kMinimaxGuidedBudget);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  std::string whole = heddle::engine::cat(
      "{", drawn(""),
      R"(, "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}}})");
  const std::string node = text("one", golden);
  const std::size_t at = whole.find(node);
  BOOST_TEST_REQUIRE((at != std::string::npos));
  whole.replace(
      at, node.size(),
      R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})");
  heddle::Engine::Data told(options);  // a node that is cached makes no calls
  check_inference(told, whole);
}

// Samplers that keep slopes, and that take two evaluations.
BOOST_AUTO_TEST_CASE(other_samplers_take_both) {
  for (const char* sampler : {"res_multistep", "heun"}) {
    const heddle::Results results =
        run_whole(heddle::engine::cat(
                      "{", drawn("", sampler),
                      R"(, "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})"),
                  {"parts.video_latent", "parts.audio_latent"});
    for (const char* part : {"parts.video_latent", "parts.audio_latent"})
      for (const float number : results.floats(part, "samples"))
        BOOST_TEST_REQUIRE(std::isfinite(number), sampler);
  }
}

// The prompt as it is, after the 50th layer: of a whole file, and of one that ends there.
BOOST_AUTO_TEST_CASE(states_of_a_prompt_equal_transformers) {
  const auto node = [](const std::string& more) {
    return heddle::engine::cat(
        R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_32b.safetensors", "type": "minimax", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "pixel_space"}},
      "seen": {"class_type": "EmptyImage", "inputs": {"width": 32, "height": 32, "batch_size": 1, "color": 0}},
      "told": {"class_type": "MiniMaxH3ImageToVideo", "inputs": {"clip": ["clip", 0], "vae": ["vae", 0],
        "prompt": "a photo of a (red fox:1.1) in the snow, soft light", "width": 96, "height": 64, "length": 6)",
        more, R"(}},
      "one": {"class_type": "test.first", "inputs": {"list": ["told", 0]}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["told", 1]}},
      "a": {"class_type": "test.look", "inputs": {"value": ["one", 0]}},
      "b": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}},
      "c": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})");
  };
  std::vector<FileTensor> tensors = seeded_model("text", false, "minimax");
  for (const bool is_cut : {false, true}) {
    if (is_cut)
      std::erase_if(tensors, [](const FileTensor& tensor) {
        return tensor.name == "model.language_model.norm.weight" ||
               tensor.name.starts_with("model.language_model.layers.50.") ||
               tensor.name.starts_with("model.language_model.layers.51.");
      });
    add("text_encoders/qwen3vl_32b", tensors);
    const heddle::Results results =
        run_whole(node(""), {"one.value", "parts.video_latent", "parts.audio_latent"});
    const double error =
        relative_error(results.floats("one.value", "cross_attn"), expected.floats("text.states"));
    BOOST_TEST(error < 1e-4, "relative error " << error);
    BOOST_TEST(results.floats("parts.video_latent", "samples").size() == 24u * 7 * 4 * 6);
    BOOST_TEST(results.floats("parts.audio_latent", "samples").size() == 32u * 2 * 37);
  }
  const std::string refusal =
      engine_refusal([&] { run_whole(node(R"(, "last_frame": ["seen", 0])"), {"one.value"}); });
  BOOST_TEST(refusal.find("its own video autoencoder") != std::string::npos, refusal);
}

// Queries, keys and values are one module in the file and three in diffusers, whose MLP has the
// gate last.
BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_every_name) {
  constexpr std::int64_t kRank = 2, kWidth = 48, kInner = 60, kMlp = 56;
  std::vector<FileTensor> factors, merged = seeded_model("whole", false, "minimax");
  const auto add_to = [&](const std::string& lora, const std::string& tensor, std::int64_t rows,
                          std::int64_t columns, auto&& to) {
    const FileTensor up = seeded_tensor(lora + ".lora_B.weight", {rows, kRank}),
                     down = seeded_tensor(lora + ".lora_A.weight", {kRank, columns});
    merge_minimax(merged, tensor, up, down, to);
    factors.push_back(up);
    factors.push_back(down);
  };
  const auto as_it_is = [](std::int64_t row) { return row; };
  add_to("diffusion_model.blocks.0.attn.qkv_proj", "blocks.0.attn.qkv_proj.weight", 3 * kInner,
         kWidth, as_it_is);
  add_to("diffusion_model.blocks.0.mlp.fc1", "blocks.0.mlp.fc1.weight", 2 * kMlp, kWidth, as_it_is);
  add_to("diffusion_model.blocks.1.adaln_proj.linear", "blocks.1.adaln_proj.linear.weight",
         18 * kWidth, 12, as_it_is);
  add_to("transformer.transformer_blocks.1.attn.to_k", "blocks.1.attn.qkv_proj.weight", kInner,
         kWidth, [](std::int64_t row) { return kInner + row; });
  add_to("transformer.transformer_blocks.1.attn.to_v", "blocks.1.attn.qkv_proj.weight", kInner,
         kWidth, [](std::int64_t row) { return 2 * kInner + row; });
  add_to("transformer.transformer_blocks.1.ff.net.0.proj", "blocks.1.mlp.fc1.weight", 2 * kMlp,
         kWidth, [](std::int64_t row) { return (row + kMlp) % (2 * kMlp); });
  add_to("transformer.token_refiner.refiner_blocks.0.attn.to_out.0",
         "token_refiner.blocks.0.attn.out_proj.weight", kWidth, kInner, as_it_is);
  add("loras/style", factors);
  add("diffusion_models/merged", merged);
  const std::string lora =
      R"("shifts": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "style.safetensors", "strength_model": 0.5}}, )";
  const auto made = [&](const std::string& more, const std::string& model) {
    return run_whole(flow(more, model), {"parts.video_latent", "parts.audio_latent"})
        .floats("parts.video_latent", "samples");
  };
  const std::vector<float> with_lora = made(lora, "whole");
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, made("", "merged")),
               moved = relative_error(with_lora, expected.floats("flow.video"));
  BOOST_TEST(error < 1e-5, "relative error " << error);
  BOOST_TEST(moved > 1e-3, "the LoRA changed " << moved);
}

BOOST_AUTO_TEST_CASE(latents_of_an_autoencoder_are_refused) {
  std::string whole = flow("");
  const auto latent = [&](const char* name) {
    return heddle::engine::cat(R"({"class_type": "test.latent", "inputs": {"path": ")",
                               golden.string(), R"(", "name": "flow.)", name, R"("}})");
  };
  const std::string full = heddle::engine::cat(
      R"("pictures": )", latent("video"), R"(, "sound": )", latent("audio"),
      R"(, "both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["pictures", 0], "audio_latent": ["sound", 0]}})");
  whole.replace(whole.find(kBoth), std::string(kBoth).size(), full);
  const std::string refusal = engine_refusal([&] {
    run_whole(whole, {"parts.video_latent", "parts.audio_latent"});
  });
  BOOST_TEST(refusal.find("Link EmptyMiniMaxH3LatentAV") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_CASE(shifts_of_another_model_are_refused) {
  add("diffusion_models/flow", seeded_model("flow", false, "ltx2"));
  const std::string refusal = engine_refusal([&] {
    run_whole(
        flow(
            R"("shifts": {"class_type": "MiniMaxH3SigmaShift", "inputs": {"model": ["model", 0], "shift_video": 10.0, "shift_audio": 2.0}}, )",
            "flow"),
        {"parts.video_latent", "parts.audio_latent"});
  });
  BOOST_TEST(refusal.find("model is ltx2") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_SUITE_END()
