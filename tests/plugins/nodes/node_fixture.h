// Runs workflows of the diffusion nodes over the tiny random models, through the facade and the
// plugins as they are loaded, and compares with goldens.safetensors (make_goldens.py). One thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

struct NodeFixture {
  // Up to a dozen model calls in f32, each good to 2e-5 (the timestep embedding's sines, see
  // random_models_test.cpp); a wrong term gives 1e-2 or more.
  static constexpr double kTolerance = 1e-4;

  TemporaryFolder folder;
  TensorFile goldens{here() / "goldens.safetensors"};
  Engine engine{options()};
  std::vector<std::string> warnings;

  static std::filesystem::path here() { return tests_folder() / "plugins/nodes"; }
  static std::filesystem::path random() { return tests_folder() / "plugins/goldens/random"; }

  // The models folder: links to the weights, under names of single files and as a pipeline.
  EngineOptions options() const {
    namespace fs = std::filesystem;
    const auto link = [&](const fs::path& to, const fs::path& name) {
      fs::create_directories((folder / name).parent_path());
      fs::create_symlink(to, folder / name);
    };
    link(random() / "flux_diffusers.safetensors", "models/diffusion_models/plain.safetensors");
    link(random() / "flux_original.safetensors", "models/unet/guided.safetensors");
    fs::create_directories(folder / "models/text_encoders");
    write_header_only(folder / "models/text_encoders/clip_l.safetensors", clip_tensors());
    link(random() / "t5.safetensors", "models/clip/t5.safetensors");
    fs::create_directories(folder / "models/loras");
    for (const fs::path& file : files_in("plugins/goldens/loras", ".safetensors"))
      link(file, "models/loras" / file.filename());
    fs::create_directories(folder / "models/vae");
    const fs::path pipeline = "models/diffusers/random";
    for (const char* name : {"model_index.json", "scheduler", "tokenizer", "tokenizer_2"})
      link(here() / "pipeline" / name, pipeline / name);
    const heddle::engine::Json configs =
        heddle::engine::parse_json(read_text(random() / "configs.json"), "configs.json");
    const std::pair<const char*, const char*> parts[] = {{"transformer", "flux"},
                                                         {"text_encoder", "clip"},
                                                         {"text_encoder_2", "t5"},
                                                         {"vae", "vae"}};
    for (const auto& [part, name] : parts) {
      const std::string file = std::string(name) +
                               (std::string(name) == "flux" ? "_diffusers" : "") +
                               (std::string(name) == "vae" ? "_diffusers" : "");
      link(random() / (file + ".safetensors"), pipeline / part / "model.safetensors");
      folder.write(pipeline / part / "config.json",
                   heddle::engine::write_json(*configs.find(name)));
    }
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.output_dir = folder / "out";
    return options;
  }

  // One layer of CLIP-L's kind, of zeros: single files are taken to have heads of 64.
  static std::vector<FileTensor> clip_tensors(const std::string& prefix = "text_model.") {
    std::vector<FileTensor> tensors{
        {prefix + "embeddings.position_embedding.weight", "BF16", {77, 64}},
        {prefix + "embeddings.token_embedding.weight", "BF16", {60, 64}},
        {prefix + "encoder.layers.0.mlp.fc1.weight", "BF16", {128, 64}},
        {prefix + "encoder.layers.0.mlp.fc1.bias", "BF16", {128}},
        {prefix + "encoder.layers.0.mlp.fc2.weight", "BF16", {64, 128}},
        {prefix + "encoder.layers.0.mlp.fc2.bias", "BF16", {64}}};
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
      const std::string module = prefix + "encoder.layers.0.self_attn." + name;
      tensors.push_back({module + ".weight", "BF16", {64, 64}});
      tensors.push_back({module + ".bias", "BF16", {64}});
    }
    for (const char* name :
         {"encoder.layers.0.layer_norm1", "encoder.layers.0.layer_norm2", "final_layer_norm"})
      for (const char* kind : {".weight", ".bias"})
        tensors.push_back({prefix + name + kind, "BF16", {64}});
    return tensors;
  }

  // The random autoencoder eight times as wide, with other numbers: single files are taken to
  // normalise in groups of 32.
  static std::vector<FileTensor> wide_autoencoder(const std::string& prefix) {
    // Pictures and latents keep their channels; what lies between is widened.
    const auto keeps_width = [](const std::string& name, std::size_t axis) {
      if (name.find("quant_conv") != std::string::npos) return true;
      if (name.starts_with("encoder.conv_in") || name.starts_with("decoder.conv_in"))
        return axis == 1;
      if (name.starts_with("encoder.conv_out") || name.starts_with("decoder.conv_out"))
        return axis == 0;
      return false;
    };
    std::vector<FileTensor> tensors;
    std::uint32_t state = 1;
    const TensorFile narrow(random() / "vae_original.safetensors");
    for (const auto& [name, entry] : narrow.entries()) {
      FileTensor tensor{prefix + name, "F32", entry.shape};
      for (std::size_t axis = 0; axis < std::min<std::size_t>(entry.shape.size(), 2); ++axis)
        if (!keeps_width(name, axis)) tensor.shape[axis] *= 8;
      std::vector<float> values(bytes_of(tensor) / sizeof(float));
      for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = (float(state >> 8) / float(1u << 24) - 0.5f) * 0.2f;
      }
      tensor.bytes = bytes_of_floats(values);
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  // Latents of the random autoencoder in its denoiser's units.
  static std::vector<float> scaled(std::vector<float> values) {
    for (float& value : values) value = value * 0.5f - 0.125f;
    return values;
  }

  // The random model whose first layer reads more, of make_concat_goldens.py: "canny" or "fill".
  void write_wider_model(const std::string& name) const {
    const TensorFile wider(here() / "concat_goldens.safetensors");
    std::vector<FileTensor> tensors;
    const TensorFile plain(random() / "flux_diffusers.safetensors");
    for (const auto& [tensor, entry] : plain.entries()) {
      const TensorFile::Entry& taken =
          tensor == "x_embedder.weight" ? wider.at(name + "." + tensor) : entry;
      tensors.push_back({tensor, taken.dtype, taken.shape, taken.bytes});
    }
    write_safetensors(folder / ("models/unet/" + name + ".safetensors"), tensors);
  }

  // A node of the golden file: "in.one" and so on.
  static std::string conditioning(const std::string& name, const std::string& option = "") {
    return R"({"class_type": "test.conditioning", "inputs": {"path": ")" + golden_path() +
           R"(", "prefix": "in.)" + name + R"(", "option": ")" + option + "\"}}";
  }
  static std::string tensor(const std::string& type, const std::string& name) {
    return R"({"class_type": ")" + type + R"(", "inputs": {"path": ")" + golden_path() +
           R"(", "name": "in.)" + name + "\"}}";
  }

  // The model, three conditionings, empty and given latents and a mask, and what a test adds.
  static std::string workflow(const std::string& nodes) {
    return R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "plain.safetensors",
                 "weight_dtype": "default"}},
              "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}},
              "one": )" +
           conditioning("one") + R"(, "two": )" + conditioning("two") + R"(, "three": )" +
           conditioning("three") + R"(, "latent": )" + tensor("test.latent", "latent") +
           R"(, "mask": )" + tensor("test.mask", "mask") + ", " + nodes + "}";
  }

  // A KSampler; `changes` replaces inputs: "\"cfg\": 1".
  static std::string ksampler(const std::string& changes = "") {
    std::string inputs = R"("model": ["model", 0], "seed": 7, "steps": 4, "cfg": 3.0,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0],
        "latent_image": ["empty", 0], "denoise": 1.0)";
    const heddle::engine::Json whole = heddle::engine::parse_json("{" + inputs + "}", "inputs");
    const heddle::engine::Json changed = heddle::engine::parse_json("{" + changes + "}", "changes");
    heddle::engine::Json merged = heddle::engine::Json::object();
    for (const auto& member : whole.members()) merged.set(member.key, member.value);
    for (const auto& member : changed.members()) merged.set(member.key, member.value);
    return R"({"class_type": "KSampler", "inputs": )" + heddle::engine::write_json(merged) + "}";
  }

  Results run(const std::string& nodes, std::vector<std::string> keep) {
    return run_whole(workflow(nodes), std::move(keep));
  }
  Results run_whole(const std::string& flow, std::vector<std::string> keep) {
    warnings.clear();
    const auto observe = [this](const Event& event) {
      if (event.kind == Event::Kind::warning) warnings.emplace_back(event.text);
    };
    return engine.start(engine.parse(flow), {observe, std::move(keep)}).wait();
  }

  // Latents of the output "out.LATENT" of one node named "out".
  void compare_latent(const std::string& nodes, const std::string& golden) {
    compare(run(nodes + ", " + kLook, {"out.LATENT"}).floats("out.LATENT", "samples"), golden);
  }
  void compare(const std::vector<float>& values, const std::string& golden) const {
    const double error = relative_error(values, goldens.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }

  // Ends a workflow at the node "out".
  static constexpr const char* kLook =
      R"("look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}})";

 private:
  static std::string golden_path() { return (here() / "goldens.safetensors").string(); }
};

}  // namespace heddle::test
