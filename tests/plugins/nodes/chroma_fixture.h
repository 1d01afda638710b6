// What the workflows of Chroma and of Chroma Radiance have in common: ComfyUI's nodes over models
// whose weights follow from their names.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

struct ChromaFixture : NodeFixture {
  // Rows of a matrix that a LoRA changes, and what its file calls them.
  struct Target {
    std::string lora, tensor;
    bool is_peft = true;               // lora_A and lora_B, else lora_down and lora_up
    std::int64_t first = 0, rows = 0;  // 0: all
  };

  TensorFile expected;

  // golden: the folder of what PyTorch made.
  explicit ChromaFixture(const std::string& golden)
      : expected(tests_folder() / "plugins/goldens" / golden / "expected.safetensors") {}

  void add(const std::vector<FileTensor>& tensors, const std::string& name) const {
    const std::filesystem::path path = folder / "models" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors);
  }
  static std::vector<FileTensor> encoder() { return seeded_model("t5xxl", false, "sd3"); }
  static std::string unet(const std::string& file, const std::string& dtype = "default") {
    return engine::cat(R"("unet": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", file,
                       R"(.safetensors", "weight_dtype": ")", dtype, R"("}})");
  }
  // From links to the picture. empty: the node that makes the latent, in pixels.
  static std::string drawing(const std::string& model, const std::string& clip,
                             const std::string& vae, const std::string& empty, int width,
                             int height) {
    return engine::cat(
        R"("model": {"class_type": "ModelSamplingAuraFlow", "inputs": {"shift": 1.0, "model": )",
        model,
        R"(}}, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a cat", "clip": )",
        clip, R"(}}, "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": )",
        clip, R"(}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["model", 0], "positive": ["one", 0], "negative": ["two", 0], "cfg": 3.5}},
      "method": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0}},
      "empty": {"class_type": ")",
        empty, R"(", "inputs": {"width": )", width, R"(, "height": )", height,
        R"(, "batch_size": 1}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["method", 0], "sigmas": ["levels", 0], "latent_image": ["empty", 0]}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": )",
        vae, R"(}}, "b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})");
  }
  std::vector<float> drawn(const std::string& flow) {
    return run_whole(flow, {"drawn.output"}).floats("drawn.output", "samples");
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  // The latent, and the picture from 0 to 1 in decibels.
  void compare_drawing(const Results& results) const {
    BOOST_TEST(warnings.empty());
    compare(results.floats("drawn.output", "samples"), "flow.latent");
    const std::vector<float> got = results.floats("picture.IMAGE"),
                             wanted = expected.floats("flow.picture");
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    const double decibels = -10 * std::log10(sum / double(got.size()));
    BOOST_TEST_MESSAGE(decibels << " dB");
    BOOST_TEST(decibels >= 70, decibels << " dB");
  }
  // A model, with `prefix` before its names.
  static void put(std::vector<FileTensor>& all, const std::string& prefix,
                  std::vector<FileTensor> tensors) {
    for (FileTensor& tensor : tensors) {
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  }

  // Writes loras/style; the model with half of it.
  std::vector<FileTensor> add_lora(const std::vector<Target>& targets,
                                   std::vector<FileTensor> model) const {
    constexpr std::int64_t kRank = 2;
    std::vector<FileTensor> factors;
    for (const Target& target : targets) {
      const auto found = std::ranges::find(model, target.tensor, &FileTensor::name);
      BOOST_TEST_REQUIRE((found != model.end()), target.tensor);
      const std::int64_t rows = target.rows > 0 ? target.rows : found->shape[0];
      const auto name = [&](const char* peft, const char* kohya) {
        return target.lora + (target.is_peft ? peft : kohya) + ".weight";
      };
      factors.push_back(seeded_tensor(name(".lora_B", ".lora_up"), {rows, kRank}));
      factors.push_back(seeded_tensor(name(".lora_A", ".lora_down"), {kRank, found->shape[1]}));
      merge_half(*found, target.first, factors.end()[-2], factors.back());
    }
    add(factors, "loras/style");
    return model;
  }
  // What is drawn with the LoRA and with the merged model; `change`: at least, in tolerances.
  void check_lora(const std::vector<float>& with_lora, const std::vector<float>& merged,
                  double change) const {
    BOOST_TEST(warnings.empty());
    const double error = relative_error(with_lora, merged),
                 moved = relative_error(with_lora, expected.floats("flow.latent"));
    BOOST_TEST(error < kTolerance, "relative error " << error);
    BOOST_TEST(moved > change * kTolerance, "the LoRA changed " << moved);
  }
  // Of a model whose matrices are in eight bits.
  void check_rounded(const std::vector<float>& latent) const {
    const double rounded = relative_error(latent, expected.floats("flow.latent"));
    BOOST_TEST((rounded > kTolerance && rounded < 0.1), "relative error " << rounded);
  }
  // ModelSave writes these tensors.
  void check_saved(const std::string& loader, const std::vector<FileTensor>& tensors) {
    run_whole(
        engine::cat(
            "{", loader,
            R"(, "save": {"class_type": "ModelSave", "inputs": {"model": ["unet", 0], "filename_prefix": "diffusion_models/saved"}}})"),
        {});
    std::filesystem::path saved;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "out"))
      if (entry.path().extension() == ".safetensors") saved = entry.path();
    BOOST_TEST_REQUIRE(!saved.empty());
    const engine::Checkpoint file = engine::open_checkpoint(saved);
    BOOST_TEST(file.tensors().size() == tensors.size());
    for (const FileTensor& tensor : tensors) {
      const engine::TensorView& same = file.at("model.diffusion_model." + tensor.name);
      BOOST_TEST(same.shape == tensor.shape, tensor.name);
      BOOST_TEST((tensor.bytes.empty() ||
                  std::memcmp(same.data.data(), tensor.bytes.data(), tensor.bytes.size()) == 0),
                 tensor.name);
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }

 private:
  static std::vector<float> floats_of(const FileTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  // Adds half of the factors' product to rows from `first` on.
  static void merge_half(FileTensor& tensor, std::int64_t first, const FileTensor& up,
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
};

}  // namespace heddle::test
