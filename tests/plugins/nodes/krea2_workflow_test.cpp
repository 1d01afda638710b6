// Krea 2 from the prompt to the picture, with ComfyUI's nodes and the file names of its templates,
// over models whose weights follow from their names, against PyTorch
// (../goldens/make_krea2_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/krea2_names.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct Krea2Workflow : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/krea2/expected.safetensors"};

  void add(const std::vector<FileTensor>& tensors, const std::string& name) const {
    write_safetensors(folder / "models" / (name + ".safetensors"), tensors);
  }
  void add_models() const {
    add(seeded_model("transformer", false, "krea2"), "diffusion_models/krea2_turbo_fp8_scaled");
    add(seeded_model("text", false, "krea2"), "text_encoders/qwen3vl_4b_fp8_scaled");
    add(seeded_model("qwen_image.vae"), "vae/qwen_image_vae");
  }
  static std::string loaders(const std::string& unet = "krea2_turbo_fp8_scaled",
                             const std::string& type = "krea2") {
    return R"("model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + unet +
           R"(.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_4b_fp8_scaled.safetensors", "type": ")" +
           type + R"(", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "qwen_image_vae.safetensors"}})";
  }
  // Links to what the loaders give.
  struct Parts {
    std::string model = R"(["model", 0])", clip = R"(["clip", 0])", vae = R"(["vae", 0])";
  };
  static std::string flow(const std::string& loaders, const Parts& parts) {
    return "{" + loaders +
           R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": )" +
           parts.clip + R"(}},
      "two": {"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["one", 0]}},
      "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": )" +
           ksampler(R"("steps": 3, "cfg": 1, "model": )" + parts.model) +
           R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": )" +
           parts.vae + R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})";
  }
  static std::string flow() { return flow(loaders(), Parts()); }
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
  void compare_drawing(const std::string& flow) {
    const heddle::Results results =
        run_whole(flow, {"first.value", "drawn.LATENT", "picture.IMAGE"});
    BOOST_TEST(warnings.empty());
    compare(results.floats("first.value", "cross_attn"), "flow.states");
    compare(results.floats("drawn.LATENT", "samples"), "flow.latent");
    const double decibels = psnr(results.floats("picture.IMAGE"), "flow.picture");
    BOOST_TEST_MESSAGE(decibels << " dB");
    BOOST_TEST(decibels >= 70, decibels << " dB");
  }
  std::vector<float> drawn(const std::string& flow) {
    return run_whole(flow, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
};

std::vector<float> floats_of(const FileTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Adds `strength` times the product of the factors to the tensor `name`.
void merge_lora(std::vector<FileTensor>& model, const std::string& name, const FileTensor& up,
                const FileTensor& down, float strength) {
  const auto found = std::ranges::find(model, name, &FileTensor::name);
  BOOST_TEST_REQUIRE((found != model.end()));
  const std::int64_t rows = up.shape[0], rank = up.shape[1], columns = down.shape[1];
  const std::vector<float> left = floats_of(up), right = floats_of(down);
  std::vector<float> values = floats_of(*found);
  BOOST_TEST_REQUIRE(std::int64_t(values.size()) == rows * columns);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t k = 0; k < rank; ++k)
        values[std::size_t(row * columns + column)] +=
            strength * left[std::size_t(row * rank + k)] * right[std::size_t(k * columns + column)];
  found->bytes = bytes_of_floats(values);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(krea2_workflows, Krea2Workflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  add_models();
  compare_drawing(flow());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts) {
  std::vector<FileTensor> all;
  const auto put = [&](const std::string& prefix, const std::vector<FileTensor>& tensors) {
    for (FileTensor tensor : tensors) {
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  };
  put("model.diffusion_model.", seeded_model("transformer", false, "krea2"));
  put("text_encoders.qwen3vl_4b.transformer.", seeded_model("text", false, "krea2"));
  put("vae.", seeded_model("qwen_image.vae"));
  std::filesystem::create_directories(folder / "models/checkpoints");
  add(all, "checkpoints/krea2");
  compare_drawing(flow(
      R"("all": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "krea2.safetensors"}})",
      {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"}));
}

BOOST_AUTO_TEST_CASE(a_diffusers_folder_needs_no_files_of_a_tokenizer) {
  const std::string at = "models/diffusers/krea2/";
  const auto part = [&](const std::string& name, const std::string& config,
                        const std::vector<FileTensor>& tensors) {
    std::filesystem::create_directories(folder / (at + name));
    folder.write(at + name + "/config.json", config);
    add(tensors, "diffusers/krea2/" + name + "/model");
  };
  std::vector<FileTensor> transformer = seeded_model("transformer", false, "krea2");
  name_krea2_as_diffusers(transformer);
  part("transformer", R"({"axes_dims_rope": [4, 6, 6], "rope_theta": 1000.0})", transformer);
  part(
      "text_encoder",
      R"({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "head_dim": 16, "rope_theta": 5000000}})",
      seeded_model("text", false, "krea2"));
  part("vae", "{}", seeded_model("qwen_image.vae", true));
  std::filesystem::create_directories(folder / (at + "scheduler"));
  folder.write(at + "scheduler/scheduler_config.json",
               R"({"use_dynamic_shifting": true, "max_shift": 1.15})");
  folder.write(at + "model_index.json",
               R"({"_class_name": "Krea2Pipeline",
           "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
           "text_encoder": ["transformers", "Qwen3VLModel"],
           "tokenizer": ["transformers", "Qwen2Tokenizer"],
           "transformer": ["diffusers", "Krea2Transformer2DModel"],
           "vae": ["diffusers", "AutoencoderKLQwenImage"]})");
  compare_drawing(
      flow(R"("all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "krea2"}})",
           {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"}));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_models();
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  heddle::Engine::Data told(options);
  check_inference(told, flow());
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_every_name) {
  add_models();
  constexpr std::int64_t kRank = 2;
  struct Target {
    std::string lora, up, down, tensor;
    std::int64_t rows, columns;
  };
  // Of the trainers of the model, of PEFT, of diffusers and of kohya.
  const Target targets[] = {
      {"diffusion_model.blocks.0.attn.wk", ".lora_B.weight", ".lora_A.weight",
       "blocks.0.attn.wk.weight", 32, 64},
      {"base_model.model.blocks.1.mlp.down", ".lora_B.weight", ".lora_A.weight",
       "blocks.1.mlp.down.weight", 64, 96},
      {"transformer.transformer_blocks.0.attn.to_gate", ".lora_B.weight", ".lora_A.weight",
       "blocks.0.attn.gate.weight", 64, 64},
      {"lora_unet_txtfusion_refiner_blocks_1_mlp_up", ".lora_up.weight", ".lora_down.weight",
       "txtfusion.refiner_blocks.1.mlp.up.weight", 40, 24}};
  std::vector<FileTensor> factors, merged = seeded_model("transformer", false, "krea2");
  for (const Target& target : targets) {
    const FileTensor up = seeded_tensor(target.lora + target.up, {target.rows, kRank}),
                     down = seeded_tensor(target.lora + target.down, {kRank, target.columns});
    merge_lora(merged, target.tensor, up, down, 0.5f);
    factors.push_back(up);
    factors.push_back(down);
  }
  add(factors, "loras/style");
  add(merged, "diffusion_models/merged");
  const std::string loader =
      R"("lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "style.safetensors", "strength_model": 0.5}}, )";
  Parts patched;
  patched.model = R"(["lora", 0])";
  const std::vector<float> with_lora = drawn(flow(loader + loaders(), patched));
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, drawn(flow(loaders("merged"), Parts()))),
               moved = relative_error(with_lora, expected.floats("flow.latent"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  add_models();
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says(engine_refusal([&] { drawn(flow(loaders("krea2_turbo_fp8_scaled", "mage"), Parts())); }),
       {"qwen3vl", "Mage-Flow", "not supported", "type krea2"});
  std::vector<FileTensor> shallow = seeded_model("text", false, "krea2");
  std::erase_if(shallow, [](const FileTensor& tensor) {
    return tensor.name.starts_with("model.language_model.layers.3") &&
           !tensor.name.starts_with("model.language_model.layers.3.");
  });
  add(shallow, "text_encoders/qwen3vl_4b_fp8_scaled");
  says(engine_refusal([&] { drawn(flow()); }), {"30 layers", "layer 35", "krea2"});
  // Z-Image's encoder has states of another width.
  add(seeded_model("z_image.text"), "text_encoders/qwen3vl_4b_fp8_scaled");
  says(engine_refusal([&] { drawn(flow()); }), {"288", "24", "Qwen3-VL 4B"});
}

BOOST_AUTO_TEST_SUITE_END()
