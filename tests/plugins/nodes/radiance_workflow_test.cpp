// Chroma Radiance from the prompt to the picture, with ComfyUI's nodes and file names, over models
// whose weights follow from their names, against PyTorch (../goldens/make_radiance_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct RadianceWorkflow : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/radiance/expected.safetensors"};

  void add(const std::vector<FileTensor>& tensors, const std::string& name) const {
    const std::filesystem::path path = folder / "models" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors);
  }
  static std::vector<FileTensor> transformer() { return seeded_model("filter", false, "radiance"); }
  void add_models() const {
    add(transformer(), "diffusion_models/chroma-radiance-x0");
    add(seeded_model("t5xxl", false, "sd3"), "text_encoders/t5xxl_fp8_e4m3fn_scaled");
  }
  static std::string loader(const std::string& dtype = "default",
                            const std::string& file = "chroma-radiance-x0") {
    return cat(R"("unet": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", file,
               R"(.safetensors", "weight_dtype": ")", dtype, R"("}})");
  }
  // options: of ChromaRadianceOptions, but the model.
  static std::string flow(
      const std::string& loader,
      const std::string& options =
          R"("preserve_wrapper": true, "start_sigma": 1, "end_sigma": 0, "nerf_tile_size": -1, "force_sequential_txt_ids": false)",
      const std::string& vae = "pixel_space") {
    return cat(
        "{", loader,
        R"(, "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "t5xxl_fp8_e4m3fn_scaled.safetensors", "type": "chroma", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")",
        vae, R"("}},
      "options": {"class_type": "ChromaRadianceOptions", "inputs": {"model": ["unet", 0], )",
        options, R"(}},
      "padded": {"class_type": "T5TokenizerOptions", "inputs": {"min_padding": 0, "min_length": 0, "clip": ["clip", 0]}},
      "model": {"class_type": "ModelSamplingAuraFlow", "inputs": {"shift": 1.0, "model": ["options", 0]}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a cat", "clip": ["padded", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["padded", 0]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["model", 0], "positive": ["one", 0], "negative": ["two", 0], "cfg": 3.5}},
      "method": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0}},
      "empty": {"class_type": "EmptyChromaRadianceLatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 1}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["method", 0], "sigmas": ["levels", 0], "latent_image": ["empty", 0]}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["vae", 0]}},
      "b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})");
  }
  std::vector<float> drawn(const std::string& flow) {
    return run_whole(flow, {"drawn.output"}).floats("drawn.output", "samples");
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
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(radiance_workflows, RadianceWorkflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  add_models();
  const heddle::Results results = run_whole(flow(loader()), {"drawn.output", "picture.IMAGE"});
  BOOST_TEST(warnings.empty());
  const double error =
      relative_error(results.floats("drawn.output", "samples"), expected.floats("flow.latent"));
  BOOST_TEST_MESSAGE("latent: relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);
  const double decibels = psnr(results.floats("picture.IMAGE"), "flow.picture");
  BOOST_TEST_MESSAGE(decibels << " dB");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_it_and_its_text_encoder) {
  std::vector<FileTensor> all;
  const auto put = [&](const std::string& prefix, const std::vector<FileTensor>& tensors) {
    for (FileTensor tensor : tensors) {
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  };
  add_models();
  put("model.diffusion_model.", transformer());
  add(all, "diffusion_models/prefixed");
  BOOST_TEST((drawn(flow(loader("default", "prefixed"))) == drawn(flow(loader()))));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_models();
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  heddle::Engine::Data told(options);
  check_inference(told, flow(loader()));
}

BOOST_AUTO_TEST_CASE(options_change_where_texts_stand_and_nothing_else) {
  add_models();
  const auto with = [&](const char* tile, const char* sequential, const char* end = "0") {
    return drawn(flow(loader(), cat(R"("preserve_wrapper": true, "start_sigma": 1, "end_sigma": )",
                                    end, R"(, "nerf_tile_size": )", tile,
                                    R"(, "force_sequential_txt_ids": )", sequential)));
  };
  const std::vector<float> plain = with("-1", "false");
  BOOST_TEST((with("16", "false", "0.5") == plain));
  std::vector<FileTensor> marked = transformer();
  marked.push_back({"__sequential__", "F32", {0}, ""});
  add(marked, "diffusion_models/marked");
  const std::vector<float> sequential = with("-1", "true");
  BOOST_TEST((sequential != plain));
  BOOST_TEST((drawn(flow(loader("default", "marked"))) == sequential));
  says(engine_refusal([&] { with("-1", "true", "0.5"); }),
       {"force_sequential_txt_ids", "end_sigma 0.5"});
  says(engine_refusal([&] { with("-2", "false"); }), {"nerf_tile_size is -2"});
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_and_eight_bits_round) {
  add_models();
  constexpr std::int64_t kRank = 2;
  struct Target {
    const char *lora, *up, *down, *tensor;
  };
  constexpr Target kTargets[] = {{"diffusion_model.nerf_blocks.1.param_generator", ".lora_B.weight",
                                  ".lora_A.weight", "nerf_blocks.1.param_generator.weight"},
                                 {"lora_unet_single_blocks_1_linear1", ".lora_up.weight",
                                  ".lora_down.weight", "single_blocks.1.linear1.weight"},
                                 {"lora_unet_nerf_image_embedder_embedder_0", ".lora_up.weight",
                                  ".lora_down.weight", "nerf_image_embedder.embedder.0.weight"}};
  std::vector<FileTensor> factors, merged = transformer();
  const auto floats_of = [](const FileTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  };
  for (const Target& target : kTargets) {
    const auto found = std::ranges::find(merged, target.tensor, &FileTensor::name);
    BOOST_TEST_REQUIRE((found != merged.end()), target.tensor);
    const std::int64_t rows = found->shape[0], columns = found->shape[1];
    factors.push_back(seeded_tensor(cat(target.lora, target.up), {rows, kRank}));
    factors.push_back(seeded_tensor(cat(target.lora, target.down), {kRank, columns}));
    std::vector<float> values = floats_of(*found);
    const std::vector<float> up = floats_of(factors.end()[-2]), down = floats_of(factors.back());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t k = 0; k < kRank; ++k)
          values[std::size_t(r * columns + c)] +=
              0.5f * up[std::size_t(r * kRank + k)] * down[std::size_t(k * columns + c)];
    found->bytes = bytes_of_floats(values);
  }
  add(factors, "loras/style");
  add(merged, "diffusion_models/merged");
  std::string patched = flow(
      loader() +
      R"(, "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["unet", 0], "lora_name": "style.safetensors", "strength_model": 0.5}})");
  const std::string from = R"("inputs": {"model": ["unet", 0], "preserve)";
  patched.replace(patched.find(from), from.size(), R"("inputs": {"model": ["lora", 0], "preserve)");
  const std::vector<float> with_lora = drawn(patched);
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, drawn(flow(loader("default", "merged")))),
               moved = relative_error(with_lora, expected.floats("flow.latent"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 10 * kTolerance, "the LoRA changed " << moved);
  const double rounded =
      relative_error(drawn(flow(loader("fp8_e4m3fn"))), expected.floats("flow.latent"));
  BOOST_TEST((rounded > kTolerance && rounded < 0.1), "relative error " << rounded);
}

BOOST_AUTO_TEST_CASE(a_saved_model_has_the_publishers_names_and_numbers) {
  add_models();
  run_whole(
      cat("{", loader(),
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
    BOOST_TEST((tensor.bytes.empty() ||
                std::memcmp(same.data.data(), tensor.bytes.data(), tensor.bytes.size()) == 0),
               tensor.name);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  add_models();
  add(seeded_model("z_image.vae"), "vae/ae");
  says(
      engine_refusal([&] {
        const std::string options =
            R"("preserve_wrapper": true, "start_sigma": 1, "end_sigma": 0, "nerf_tile_size": -1, "force_sequential_txt_ids": false)";
        run_whole(flow(loader(), options, "ae.safetensors"), {});
      }),
      {"3", "16"});
  std::vector<FileTensor> wide = transformer();
  for (FileTensor& tensor : wide)
    if (tensor.name == "txt_in.weight") tensor = seeded_tensor("txt_in.weight", {48, 64});
  add(wide, "diffusion_models/wide");
  says(engine_refusal([&] { drawn(flow(loader("default", "wide"))); }),
       {"160", "64", "CLIPLoader, type chroma"});
}

BOOST_AUTO_TEST_SUITE_END()
