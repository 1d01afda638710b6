// Workflows of Qwen-Image Edit and Edit-Plus over models whose weights follow from their names, and
// the pictures of ../goldens/edit (make_edit_goldens.py). One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

inline constexpr const char* kEditPrompt = "a photo of a (red fox:1.1) in the snow, soft light";
inline constexpr const char* kTextEncoder = "qwen_2.5_vl_7b_fp8_scaled";

inline std::filesystem::path edit_folder() { return tests_folder() / "plugins/goldens/edit"; }

struct EditFixture {
  TemporaryFolder folder;
  std::vector<FileTensor> text = seeded_model("text", false, "edit");
  std::vector<std::string> warnings;
  std::optional<Engine> engine;  // from the first run on; results lie in its memory

  void add(const std::string& name, const std::vector<FileTensor>& tensors) const {
    std::filesystem::create_directories((folder / "models" / name).parent_path());
    write_safetensors(folder / "models" / (name + ".safetensors"), tensors);
  }
  void add_models(const std::string& transformer) const {
    add("diffusion_models/" + transformer, seeded_model("qwen_image.transformer"));
    add(engine::cat("text_encoders/", kTextEncoder), text);
    add("vae/qwen_image_vae", seeded_model("qwen_image.vae"));
  }
  EngineOptions options() const {
    EngineOptions options = engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.input_dir = edit_folder();
    options.output_dir = folder / "out";
    return options;
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return engine::cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs,
                       "}}");
  }
  // The encoders, the pictures "one" and "two", and what is added.
  static std::string flow(const std::string& more, const std::string& type = "qwen_image") {
    return engine::cat(R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")",
                       kTextEncoder, R"(.safetensors", "type": ")", type,
                       R"(", "device": "default"}})",
                       node("vae", "VAELoader", R"("vae_name": "qwen_image_vae.safetensors")"),
                       node("one", "LoadImage", R"("image": "one.png")"),
                       node("two", "LoadImage", R"("image": "two.png")"), more, "}");
  }
  static std::string look(const std::string& name, const std::string& at) {
    return node(name + "_first", "test.first", engine::cat(R"("list": [")", at, "\", 0]")) +
           node(name + "_seen", "test.look", engine::cat(R"("value": [")", name, "_first\", 0]"));
  }
  static std::string edit(const std::string& name, const std::string& prompt,
                          const std::string& more = R"(, "image": ["one", 0], "vae": ["vae", 0])") {
    return node(name, "TextEncodeQwenImageEdit",
                engine::cat(R"("clip": ["clip", 0], "prompt": ")", prompt, "\"", more));
  }
  static std::string plus(
      const std::string& name,
      const std::string& more = R"(, "image1": ["one", 0], "image3": ["two", 0])") {
    return node(name, "TextEncodeQwenImageEditPlus",
                engine::cat(R"("clip": ["clip", 0], "vae": ["vae", 0], "prompt": ")", kEditPrompt,
                            "\"", more));
  }
  // From the model to the picture; `more` are inputs of the sampler.
  static std::string drawn(const std::string& transformer, const std::string& more) {
    return node("unet", "UNETLoader",
                engine::cat(R"("unet_name": ")", transformer,
                            R"(.safetensors", "weight_dtype": "default")")) +
           node("shifted", "ModelSamplingAuraFlow", R"("model": ["unet", 0], "shift": 3.1)") +
           node("model", "CFGNorm", R"("model": ["shifted", 0], "strength": 1.0)") +
           node("empty", "EmptySD3LatentImage", R"("width": 80, "height": 48, "batch_size": 1)") +
           node(
               "drawn", "KSampler",
               engine::cat(R"("model": ["model", 0], "seed": 7, "steps": 2, "sampler_name": "euler",
                       "scheduler": "simple", "latent_image": ["empty", 0], "denoise": 1.0, )",
                           more)) +
           node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["vae", 0])") +
           node("seen", "test.look", R"("value": ["picture", 0])");
  }
  Results run(const std::string& text_of_flow, std::vector<std::string> keep) {
    if (!engine) engine.emplace(options());
    const auto observe = [this](const Event& event) {
      if (event.kind == Event::Kind::warning) warnings.emplace_back(event.text);
    };
    return engine->start(engine->parse(text_of_flow), {observe, std::move(keep)}).wait();
  }

  std::vector<std::int64_t> states_shape(const std::string& nodes) {
    return run(flow(nodes + look("edit", "edit")), {"edit_first.value"})
        .shape("edit_first.value", "cross_attn");
  }
};

}  // namespace heddle::test
