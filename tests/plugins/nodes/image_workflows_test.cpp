// Workflows of Qwen-Image and Z-Image from the prompt to the picture, with ComfyUI's nodes and the
// file names of its examples, over models whose weights follow from their names, against PyTorch
// (../goldens/make_workflow_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

constexpr const char* kFox = "a photo of a (red fox:1.1) in the snow, soft light";

struct WorkflowFixture : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/workflows/expected.safetensors"};

  void add(const std::string& model, const std::string& name) const {
    write_safetensors(folder / "models" / (name + ".safetensors"), seeded_model(model));
  }
  static std::string text(const std::string& prompt) {
    return R"({"class_type": "CLIPTextEncode", "inputs": {"text": ")" + prompt +
           R"(", "clip": ["clip", 0]}})";
  }
  static std::string look(const std::string& name, const std::string& node) {
    return "\"" + name + R"(": {"class_type": "test.look", "inputs": {"value": [")" + node +
           R"(", 0]}})";
  }
  // From the loaders to the picture; nodes "one", "two" (texts), "drawn", "picture".
  static std::string flow(const std::string& unet, const std::string& clip, const std::string& type,
                          const std::string& vae, const std::string& more,
                          const std::string& sampling) {
    return R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + unet +
           R"(.safetensors", "weight_dtype": "default"}},
        "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")" +
           clip + R"(.safetensors", "type": ")" + type + R"(", "device": "default"}},
        "vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")" +
           vae + R"(.safetensors"}},
        "one": )" +
           text(kFox) + R"(, "two": )" + text(" ") + more +
           R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
        "drawn": )" +
           ksampler(sampling) +
           R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["vae", 0]}},
        "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
        "second": {"class_type": "test.first", "inputs": {"list": ["two", 0]}}, )" +
           look("a", "first") + ", " + look("b", "second") + ", " + look("c", "picture") + "}";
  }
  static std::string qwen_flow() {
    return flow(
        "qwen_image_fp8_e4m3fn", "qwen_2.5_vl_7b_fp8_scaled", "qwen_image", "qwen_image_vae",
        R"(, "shifted": {"class_type": "ModelSamplingAuraFlow", "inputs": {"model": ["model", 0], "shift": 3.1}})",
        R"("model": ["shifted", 0], "steps": 3, "cfg": 2.5)");
  }
  static std::string z_flow() {
    return flow("z_image_turbo_bf16", "qwen_3_4b", "lumina2", "ae", "", R"("steps": 3, "cfg": 1)");
  }
  void add_qwen() const {
    add("qwen_image.transformer", "diffusion_models/qwen_image_fp8_e4m3fn");
    add("qwen_image.text", "text_encoders/qwen_2.5_vl_7b_fp8_scaled");
    add("qwen_image.vae", "vae/qwen_image_vae");
  }
  void add_z() const {
    add("z_image.transformer", "diffusion_models/z_image_turbo_bf16");
    add("z_image.text", "text_encoders/qwen_3_4b");
    add("z_image.vae", "vae/ae");
  }

  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  // In decibels, of pictures from 0 to 1.
  double psnr(const std::vector<float>& got, const std::string& golden) const {
    const std::vector<float> wanted = expected.floats(golden);
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    return -10 * std::log10(sum / double(got.size()));
  }
  void compare_drawing(const heddle::Results& results, const std::string& family) {
    BOOST_TEST(warnings.empty());
    compare(results.floats("first.value", "cross_attn"), family + ".cross_attn");
    compare(results.floats("drawn.LATENT", "samples"), family + ".latent");
    const double decibels = psnr(results.floats("picture.IMAGE"), family + ".picture");
    BOOST_TEST_MESSAGE(family << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, family << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(image_workflows, WorkflowFixture)

// Its autoencoder takes several pictures for a video, of which two make one frame, as in ComfyUI.
BOOST_AUTO_TEST_CASE(a_latent_of_one_frame_is_one_of_a_picture) {
  add_qwen();
  const auto drawn = [&](int count) {
    std::string whole = qwen_flow();
    const std::string empty =
        R"({"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}})";
    const std::size_t at = whole.find(empty);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    whole.replace(
        at, empty.size(),
        heddle::engine::cat(
            R"({"class_type": "VAEEncode", "inputs": {"pixels": ["seen", 0], "vae": ["vae", 0]}},
        "seen": {"class_type": "EmptyImage", "inputs": {"width": 80, "height": 48, "batch_size": )",
            count, R"(, "color": 4227264}})"));
    return run_whole(whole, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  };
  BOOST_TEST((drawn(2) == drawn(1)));
}

BOOST_AUTO_TEST_CASE(qwen_image_from_the_prompt_to_the_picture_equals_pytorch) {
  add_qwen();
  const heddle::Results results =
      run_whole(qwen_flow(), {"first.value", "second.value", "drawn.LATENT", "picture.IMAGE"});
  compare(results.floats("second.value", "cross_attn"), "qwen_image.negative");
  compare_drawing(results, "qwen_image");
}

BOOST_AUTO_TEST_CASE(z_image_from_the_prompt_to_the_picture_equals_pytorch) {
  add_z();
  compare_drawing(run_whole(z_flow(), {"first.value", "drawn.LATENT", "picture.IMAGE"}), "z_image");
}

BOOST_AUTO_TEST_CASE(a_lora_of_z_image_finds_its_modules_by_both_names) {
  add_z();
  constexpr std::int64_t kRank = 2;
  // Of the third that are keys, by the name in diffusers; of a whole matrix, by the original one.
  const std::pair<const char*, std::int64_t> modules[] = {{"layers.0.attention.to_k", 48},
                                                          {"noise_refiner.0.feed_forward.w2", 48}};
  std::vector<FileTensor> factors, changed = seeded_model("z_image.transformer");
  const auto floats_of = [](const FileTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  };
  for (const auto& [module, rows] : modules) {
    const bool is_key = std::string(module).ends_with("to_k");
    const std::string name =
        is_key ? "layers.0.attention.qkv.weight" : std::string(module) + ".weight";
    const auto found = std::ranges::find(changed, name, &FileTensor::name);
    BOOST_TEST_REQUIRE((found != changed.end()));
    const std::int64_t columns = found->shape[1], first = is_key ? rows : 0;
    const std::string at = std::string("diffusion_model.") + module;
    factors.push_back(seeded_tensor(at + ".lora_A.weight", {kRank, columns}));
    factors.push_back(seeded_tensor(at + ".lora_B.weight", {rows, kRank}));
    const std::vector<float> down = floats_of(factors[factors.size() - 2]),
                             up = floats_of(factors.back());
    std::vector<float> values = floats_of(*found);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        for (std::int64_t k = 0; k < kRank; ++k)
          values[std::size_t((first + row) * columns + column)] +=
              0.5f * up[std::size_t(row * kRank + k)] * down[std::size_t(k * columns + column)];
    found->bytes = bytes_of_floats(values);
  }
  write_safetensors(folder / "models/loras/z.safetensors", factors);
  const std::string unet = "z_image_turbo_bf16.safetensors", model = R"("model":["model",0])";
  std::string patched = z_flow(), merged = z_flow();
  patched.replace(patched.find(model), model.size(), R"("model":["lora",0])");
  patched.insert(1,
                 R"("lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0],
      "lora_name": "z.safetensors", "strength_model": 0.5}}, )");
  write_safetensors(folder / "models/diffusion_models/merged.safetensors", changed);
  merged.replace(merged.find(unet), unet.size(), "merged.safetensors");
  const auto drawn = [&](const std::string& flow) {
    return run_whole(flow, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  };
  const std::vector<float> with_lora = drawn(patched);
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, drawn(merged)),
               moved = relative_error(with_lora, expected.floats("z_image.latent"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_refused_with_what_it_is_and_who_loads_it) {
  add_z();
  const auto refusal = [&](const std::string& node) {
    return engine_refusal([&] { run_whole("{\"x\": " + node + ", " + look("a", "x") + "}", {}); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto link = [&](const char* from, const char* to) {
    std::filesystem::create_symlink(folder / "models" / from, folder / "models" / to);
  };
  link("diffusion_models/z_image_turbo_bf16.safetensors", "text_encoders/model.safetensors");
  link("text_encoders/qwen_3_4b.safetensors", "diffusion_models/text.safetensors");
  link("diffusion_models/z_image_turbo_bf16.safetensors", "vae/model.safetensors");
  says(
      refusal(
          R"({"class_type": "CLIPLoader", "inputs": {"clip_name": "model.safetensors", "type": "lumina2"}})"),
      {"model.safetensors", "a diffusion model (z-image), not a text encoder", "UNETLoader"});
  says(
      refusal(
          R"({"class_type": "UNETLoader", "inputs": {"unet_name": "text.safetensors", "weight_dtype": "default"}})"),
      {"text.safetensors", "a text encoder (language_model), not a diffusion model", "CLIPLoader"});
  says(refusal(R"({"class_type": "VAELoader", "inputs": {"vae_name": "model.safetensors"}})"),
       {"model.safetensors", "a diffusion model (z-image), not an autoencoder", "UNETLoader"});
  says(
      refusal(
          R"({"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_3_4b.safetensors", "type": "flux2"}})"),
      {"qwen3 has 3 layers", "type 'flux2'", "layer 27", "Change the type"});
}

BOOST_AUTO_TEST_CASE(a_node_with_texts_for_other_encoders_says_so) {
  add_z();
  const std::string text = engine_refusal([&] {
    run_whole(
        R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_3_4b.safetensors", "type": "lumina2"}},
            "x": {"class_type": "CLIPTextEncodeFlux", "inputs": {"clip": ["clip", 0], "clip_l": "a fox", "t5xxl": "a fox", "guidance": 3.5}}, )" +
            look("a", "x") + "}",
        {});
  });
  for (const char* word : {"clip_l and t5xxl", "reads qwen3", "CLIPTextEncode"})
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

BOOST_AUTO_TEST_CASE(an_encoder_that_does_not_fit_the_model_is_refused_before_anything_runs) {
  add_z();
  std::vector<FileTensor> wide = seeded_model("z_image.transformer");
  for (FileTensor& tensor : wide)
    if (tensor.name.starts_with("cap_embedder.") && !tensor.name.ends_with("bias"))
      tensor = seeded_tensor(tensor.name, tensor.shape.size() == 1
                                              ? std::vector<std::int64_t>{32}
                                              : std::vector<std::int64_t>{tensor.shape[0], 32});
  write_safetensors(folder / "models/diffusion_models/z_image_turbo_bf16.safetensors", wide);
  const std::string text = engine_refusal([&] { engine.plan(engine.parse(z_flow())); });
  for (const char* word : {"24 wide", "z-image", "reads 32", "Qwen3 4B", "CLIPLoader"})
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

BOOST_AUTO_TEST_CASE(an_autoencoder_of_other_latents_is_refused_before_anything_runs) {
  add_z();
  write_safetensors(folder / "models/vae/small.safetensors", wide_autoencoder(""));
  std::string other = z_flow();
  const std::string vae = "ae.safetensors";
  other.replace(other.find(vae), vae.size(), "small.safetensors");
  const std::string text = engine_refusal([&] { engine.plan(engine.parse(other)); });
  BOOST_TEST(text.find("16 channels, the autoencoder takes 4") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_prompt_that_begins_a_chat_is_taken_as_it_is) {
  add_qwen();
  const auto encoded = [&](const std::string& prompt) {
    return run_whole(
               R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_2.5_vl_7b_fp8_scaled.safetensors", "type": "qwen_image"}}, "one": )" +
                   text(prompt) +
                   R"(, "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}}, )" +
                   look("a", "first") + "}",
               {"first.value"})
        .shape("first.value", "cross_attn");
  };
  using Shape = std::vector<std::int64_t>;
  // Behind the second turn and "user", two words; behind one turn of another role, its role and so
  // on, too.
  BOOST_TEST(encoded("<|im_start|>system\\nbe<|im_end|>\\n<|im_start|>user\\na fox") ==
             (Shape{1, 2, 24}));
  BOOST_TEST(encoded("<|im_start|>system\\na fox") == (Shape{1, 5, 24}));
}

BOOST_AUTO_TEST_CASE(weights_of_a_prompt_do_not_count_and_a_layer_to_stop_at_does) {
  add_z();
  const auto encoded = [&](const std::string& clip) {
    return run_whole(
               R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_3_4b.safetensors", "type": "lumina2"}},
           "stopped": {"class_type": "CLIPSetLastLayer", "inputs": {"clip": ["clip", 0], "stop_at_clip_layer": -2}},
           "earlier": {"class_type": "CLIPSetLastLayer", "inputs": {"clip": ["clip", 0], "stop_at_clip_layer": -3}},
           "one": {"class_type": "CLIPTextEncode", "inputs": {"text": ")" +
                   std::string(kFox) + R"(", "clip": [")" + clip + R"(", 0]}},
           "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}}, )" +
                   look("a", "first") + "}",
               {"first.value"})
        .floats("first.value", "cross_attn");
  };
  compare(encoded("clip"), "z_image.cross_attn");
  compare(encoded("stopped"), "z_image.cross_attn");
  const double other = relative_error(encoded("earlier"), expected.floats("z_image.cross_attn"));
  BOOST_TEST(other > 0.01);
}

BOOST_AUTO_TEST_SUITE_END()
