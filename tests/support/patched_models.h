// Workflows over tiny models whose weights follow from their names, with what
// plugins/goldens/patches holds: model patches of Z-Image and Qwen-Image.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"

namespace heddle::test {

inline std::filesystem::path patches_golden() {
  return tests_folder() / "plugins/goldens/patches/expected.safetensors";
}

// A folder of models: "z" and "qwen", their autoencoders, and patches under their names.
inline void write_patched_models(const std::filesystem::path& folder) {
  const auto add = [&](const char* name, const std::vector<FileTensor>& tensors) {
    std::filesystem::create_directories((folder / name).parent_path());
    write_safetensors(folder / name, tensors);
  };
  add("diffusion_models/z.safetensors", seeded_model("z_image", false, "patches"));
  add("diffusion_models/qwen.safetensors", seeded_model("qwen_image.transformer"));
  add("text_encoders/z.safetensors", seeded_model("z_image.text"));
  add("text_encoders/qwen.safetensors", seeded_model("qwen_image.text"));
  add("vae/z.safetensors", seeded_model("z_image.vae"));
  add("vae/qwen.safetensors", seeded_model("qwen_image.vae"));
  for (const char* name : {"alone", "beside", "repeated", "qwen_edges", "qwen_inpaint"})
    add(engine::cat("model_patches/", name, ".safetensors").c_str(),
        seeded_model(name, false, "patches"));
}

inline std::string node_of(const std::string& name, const std::string& type,
                           const std::string& inputs) {
  return engine::cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs,
                     "}}");
}

// A node that applies a patch to a model; `more` are inputs.
inline std::string patched_by(const std::string& name, const std::string& patch,
                              const std::string& from, const std::string& more) {
  const bool is_qwen = patch.starts_with("qwen");
  return engine::cat(node_of(name + "_file", "ModelPatchLoader",
                             engine::cat(R"("name": ")", patch, R"(.safetensors")")),
                     node_of(name, is_qwen ? "QwenImageDiffsynthControlnet" : "ZImageFunControlnet",
                             engine::cat(R"("model": [")", from, R"(", 0], "model_patch": [")",
                                         name, R"(_file", 0], "vae": ["vae", 0], )", more)));
}

// Three guided steps of the model "z" or "qwen" with the node "applied" in its place, seen by
// "seen". `hints`: of the sampler's node, as `"key": value`. Conditionings: of a golden file.
struct PatchedFlow {
  std::string model = "z", nodes, cfg = "2.0", hints = "";
  std::string positive = "in.one", negative = "in.two";
  int items = 1;
  bool is_encoded = false;  // by an encoder of the model's, not out of the file

  std::string text() const {
    const auto given = [&](const char* name, const std::string& prefix) {
      if (is_encoded)
        return node_of(name, "CLIPTextEncode",
                       engine::cat(R"("clip": ["clip", 0], "text": "a fox, )", prefix, "\""));
      return node_of(name, "test.conditioning",
                     engine::cat(R"("path": ")", patches_golden().string(), R"(", "prefix": ")",
                                 prefix, R"(", "option": "")"));
    };
    return engine::cat(
        R"({"unet": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", model,
        R"(.safetensors", "weight_dtype": "default"}})",
        node_of("vae", "VAELoader", engine::cat(R"("vae_name": ")", model, R"(.safetensors")")),
        node_of("model", "ModelSamplingAuraFlow",
                engine::cat(R"("model": ["unet", 0], "shift": )", model == "z" ? "3.0" : "3.1")),
        node_of("clip", "CLIPLoader",
                engine::cat(R"("clip_name": ")", model, R"(.safetensors", "type": ")",
                            model == "z" ? "lumina2" : "qwen_image", "\"")),
        node_of("hint", "LoadImage", R"("image": "hint.png")"),
        node_of("turned", "ImageFlip",
                R"("image": ["hint", 0], "flip_method": "y-axis: horizontally")"),
        given("one", positive), given("two", negative),
        node_of("empty", "EmptySD3LatentImage",
                engine::cat(R"("width": 80, "height": 48, "batch_size": )", items)),
        nodes,
        R"(, "drawn": {"class_type": "KSampler", "inputs": {"model": ["applied", 0], "seed": 7,
        "steps": 3, "cfg": )",
        cfg, R"(, "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0,
        "positive": ["one", 0], "negative": ["two", 0], "latent_image": ["empty", 0]})",
        hints, "}", node_of("seen", "test.look", R"("value": ["drawn", 0])"), "}");
  }
};

}  // namespace heddle::test
