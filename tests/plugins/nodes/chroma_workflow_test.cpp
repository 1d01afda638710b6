// Chroma from the prompt to the picture, with ComfyUI's nodes and file names, over models whose
// weights follow from their names, against PyTorch (../goldens/make_chroma_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/chroma_names.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct ChromaWorkflow : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/chroma/expected.safetensors"};

  static constexpr std::size_t kTextWidth = 160;

  void add(const std::vector<FileTensor>& tensors, const std::string& name) const {
    const std::filesystem::path path = folder / "models" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors);
  }
  static std::vector<FileTensor> transformer() {
    return seeded_model("transformer", false, "chroma");
  }
  static std::vector<FileTensor> encoder() { return seeded_model("t5xxl", false, "sd3"); }
  void add_models() const {
    add(transformer(), "diffusion_models/chroma");
    add(encoder(), "text_encoders/t5xxl_fp16");
    add(seeded_model("z_image.vae"), "vae/ae");
  }
  static std::string unet(const std::string& file = "chroma",
                          const std::string& dtype = "default") {
    return cat(R"("unet": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", file,
               R"(.safetensors", "weight_dtype": ")", dtype, R"("}})");
  }
  static std::string clip(const std::string& file = "t5xxl_fp16",
                          const std::string& type = "chroma") {
    return cat(R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")", file,
               R"(.safetensors", "type": ")", type, R"(", "device": "default"}})");
  }
  static std::string loaders() {
    return cat(unet(), ", ", clip(),
               R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}})");
  }
  // Links to what the loaders give.
  struct Parts {
    std::string model = R"(["unet", 0])", clip = R"(["clip", 0])", vae = R"(["vae", 0])";
  };
  static std::string flow(const std::string& loaders, const Parts& parts) {
    return cat(
        "{", loaders,
        R"(, "model": {"class_type": "ModelSamplingAuraFlow", "inputs": {"shift": 1.0, "model": )",
        parts.model,
        R"(}}, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a cat", "clip": )",
        parts.clip,
        R"(}}, "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": )",
        parts.clip, R"(}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["model", 0], "positive": ["one", 0], "negative": ["two", 0], "cfg": 3.5}},
      "method": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["method", 0], "sigmas": ["levels", 0], "latent_image": ["empty", 0]}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": )",
        parts.vae, R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})");
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
  void compare_drawing(const std::string& flow) {
    const heddle::Results results =
        run_whole(flow, {"first.value", "drawn.output", "picture.IMAGE"});
    BOOST_TEST(warnings.empty());
    compare(results.floats("first.value", "cross_attn"), "flow.states");
    compare(results.floats("drawn.output", "samples"), "flow.latent");
    const double decibels = psnr(results.floats("picture.IMAGE"), "flow.picture");
    BOOST_TEST_MESSAGE(decibels << " dB");
    BOOST_TEST(decibels >= 70, decibels << " dB");
  }
  std::vector<float> drawn(const std::string& loaders, const Parts& parts) {
    return run_whole(flow(loaders, parts), {"drawn.output"}).floats("drawn.output", "samples");
  }
  std::vector<float> states(const std::string& text, const std::string& node = "",
                            const std::string& clip_node = "clip") {
    return run_whole(cat("{", clip(), node,
                         R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": ")", text,
                         R"(", "clip": [")", clip_node, R"(", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})"),
                     {"first.value"})
        .floats("first.value", "cross_attn");
  }
  static std::vector<float> floats_of(const FileTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  // Adds half of the factors' product to rows from `first` on.
  static void merge_lora(FileTensor& tensor, std::int64_t first, const FileTensor& up,
                         const FileTensor& down) {
    std::vector<float> values = floats_of(tensor);
    const std::vector<float> u = floats_of(up), d = floats_of(down);
    const std::int64_t columns = tensor.shape[1], rank = up.shape[1];
    for (std::int64_t row = 0; row < up.shape[0]; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        for (std::int64_t k = 0; k < rank; ++k)
          values[std::size_t((first + row) * columns + column)] +=
              0.5f * u[std::size_t(row * rank + k)] * d[std::size_t(k * columns + column)];
    tensor.bytes = bytes_of_floats(values);
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(chroma_workflows, ChromaWorkflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  add_models();
  compare_drawing(flow(loaders(), Parts()));
  // Texts have no padding but what is asked for, and weigh against padding alone.
  BOOST_TEST(states("").size() == kTextWidth);
  compare(states("a photo of a (cat:1.3)"), "flow.weighted");
  const std::string options =
      R"(, "padded": {"class_type": "T5TokenizerOptions", "inputs": {"min_padding": 1, "min_length": 0, "clip": ["clip", 0]}})";
  BOOST_TEST(states("a photo of a cat", options, "padded").size() == 9 * kTextWidth);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts) {
  std::vector<FileTensor> all;
  const auto put = [&](const std::string& prefix, const std::vector<FileTensor>& tensors) {
    for (FileTensor tensor : tensors) {
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  };
  put("model.diffusion_model.", transformer());
  put("text_encoders.t5xxl.transformer.", encoder());
  put("vae.", seeded_model("z_image.vae"));
  add(all, "checkpoints/chroma");
  compare_drawing(flow(
      R"("all": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "chroma.safetensors"}})",
      {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"}));
}

BOOST_AUTO_TEST_CASE(a_diffusers_folder_draws_as_single_files_do) {
  namespace fs = std::filesystem;
  add_models();
  const fs::path tokenizer =
      fs::path(HEDDLE_SOURCE_DIR) / "graphs/models/diffusers/tiny-scenes/tokenizer_2";
  const std::string at = "models/diffusers/tiny/";
  fs::create_directories(folder / at / "tokenizer");
  fs::create_directories(folder / "models/tokenizers/t5xxl");
  for (const fs::path& to : {folder / at / "tokenizer", folder / "models/tokenizers/t5xxl"})
    fs::copy(tokenizer, to);
  std::vector<FileTensor> named = transformer();
  name_chroma_as_diffusers(named);
  const auto part = [&](const std::string& name, const std::vector<FileTensor>& tensors) {
    add(tensors, "diffusers/tiny/" + name + "/model");
    folder.write(at + name + "/config.json", "{}");
  };
  part("transformer", named);
  part("text_encoder", encoder());
  part("vae", seeded_model("z_image.vae"));
  folder.write(at + "model_index.json",
               R"({"_class_name": "ChromaPipeline",
           "text_encoder": ["transformers", "T5EncoderModel"],
           "tokenizer": ["transformers", "T5Tokenizer"],
           "transformer": ["diffusers", "ChromaTransformer2DModel"],
           "vae": ["diffusers", "AutoencoderKL"]})");
  const std::vector<float> whole =
      drawn(R"("all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny"}})",
            {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"});
  BOOST_TEST(whole == drawn(loaders(), Parts()));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_models();
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  heddle::Engine::Data told(options);
  check_inference(told, flow(loaders(), Parts()));
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_every_name_and_eight_bits_round) {
  add_models();
  constexpr std::int64_t kRank = 2, kHidden = 48;
  struct Target {
    std::string lora, up, down;
    const char* tensor;
    std::int64_t first, rows;
  };
  const std::string a = ".lora_A.weight", b = ".lora_B.weight";
  const Target targets[] = {{"transformer.transformer_blocks.0.attn.to_k", b, a,
                             "double_blocks.0.img_attn.qkv.weight", kHidden, kHidden},
                            {"transformer.single_transformer_blocks.1.proj_mlp", b, a,
                             "single_blocks.1.linear1.weight", 3 * kHidden, 4 * kHidden},
                            {"transformer.distilled_guidance_layer.layers.1.linear_1", b, a,
                             "distilled_guidance_layer.layers.1.in_layer.weight", 0, 32},
                            {"diffusion_model.distilled_guidance_layer.out_proj", b, a,
                             "distilled_guidance_layer.out_proj.weight", 0, kHidden},
                            {"lora_unet_double_blocks_1_txt_mlp_2", ".lora_up.weight",
                             ".lora_down.weight", "double_blocks.1.txt_mlp.2.weight", 0, kHidden}};
  std::vector<FileTensor> factors, merged = transformer();
  for (const Target& target : targets) {
    const auto found = std::ranges::find(merged, target.tensor, &FileTensor::name);
    BOOST_TEST_REQUIRE((found != merged.end()), target.tensor);
    factors.push_back(seeded_tensor(target.lora + target.up, {target.rows, kRank}));
    factors.push_back(seeded_tensor(target.lora + target.down, {kRank, found->shape[1]}));
    merge_lora(*found, target.first, factors.end()[-2], factors.back());
  }
  add(factors, "loras/style");
  add(merged, "diffusion_models/merged");
  const std::string
      rest = loaders().substr(unet().size()),
      lora =
          R"(, "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["unet", 0], "lora_name": "style.safetensors", "strength_model": 0.5}})";
  Parts patched;
  patched.model = R"(["lora", 0])";
  const std::vector<float> with_lora = drawn(loaders() + lora, patched);
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, drawn(unet("merged") + rest, Parts())),
               moved = relative_error(with_lora, expected.floats("flow.latent"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
  // Matrices in eight bits.
  const double rounded = relative_error(drawn(unet("chroma", "fp8_e4m3fn") + rest, Parts()),
                                        expected.floats("flow.latent"));
  BOOST_TEST((rounded > kTolerance && rounded < 0.1), "relative error " << rounded);
}

BOOST_AUTO_TEST_CASE(a_saved_model_has_the_publishers_names_and_numbers) {
  std::vector<FileTensor> named = transformer();
  name_chroma_as_diffusers(named);
  add(named, "diffusion_models/diffusers");
  run_whole(
      cat("{", unet("diffusers"),
          R"(, "save": {"class_type": "ModelSave", "inputs": {"model": ["unet", 0], "filename_prefix": "diffusion_models/saved"}}})"),
      {});
  std::filesystem::path saved;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "out"))
    if (entry.path().extension() == ".safetensors") saved = entry.path();
  BOOST_TEST_REQUIRE(!saved.empty());
  const heddle::engine::Checkpoint file = heddle::engine::open_checkpoint(saved);
  BOOST_TEST(file.tensors().size() == transformer().size());
  for (const FileTensor& tensor : transformer()) {
    const heddle::engine::TensorView& same = file.at("model.diffusion_model." + tensor.name);
    BOOST_TEST(same.shape == tensor.shape, tensor.name);
    BOOST_TEST(std::memcmp(same.data.data(), tensor.bytes.data(), tensor.bytes.size()) == 0,
               tensor.name);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  add_models();
  add(seeded_model("clip_l", false, "sd3"), "text_encoders/clip_l");
  const std::string vae =
      R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}})";
  says(engine_refusal([&] { drawn(cat(unet(), ", ", clip("clip_l"), vae), Parts()); }),
       {"clip_l", "chroma", "t5xxl alone"});
  says(engine_refusal([&] { drawn(cat(unet(), ", ", clip("t5xxl_fp16", "mochi"), vae), Parts()); }),
       {"t5xxl", "'mochi'", "t5xxl with chroma"});
  says(engine_refusal([&] { drawn(cat(unet(), ", ", clip("t5xxl_fp16", "wan"), vae), Parts()); }),
       {"t5xxl", "'wan'", "UMT5-XXL"});
  std::vector<FileTensor> wide = transformer();
  for (FileTensor& tensor : wide)
    if (tensor.name == "txt_in.weight") tensor = seeded_tensor("txt_in.weight", {48, 64});
  add(wide, "diffusion_models/chroma");
  says(engine_refusal([&] { drawn(loaders(), Parts()); }),
       {"160", "64", "CLIPLoader, type chroma"});
}

BOOST_AUTO_TEST_SUITE_END()
