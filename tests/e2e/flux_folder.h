// A models folder for ComfyUI's four FLUX workflows: weights under the very names that these
// workflows ask for, and the tokenizers of the shipped model.
#pragma once

#include "tests/e2e/flux_files.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/temporary_folder.h"

namespace heddle::test {

inline constexpr const char* kFluxWorkflows[] = {"flux_dev", "flux_dev_checkpoint", "flux_schnell",
                                                 "flux_schnell_checkpoint"};

inline std::filesystem::path shipped_model() {
  return std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs/models/diffusers/tiny-scenes";
}

class FluxFolder {
 public:
  enum class Content { header_only, random };

  explicit FluxFolder(Content content) {
    const bool small = content == Content::random;
    const FluxSize size = small ? kSmallFlux : FluxSize{};
    // The published types, checkpoints in fp8 among them. Random weights of files are bf16 instead
    // of f16 and f32, so that both forms hold the same numbers.
    const auto type = [&](const char* published) { return small ? "BF16" : published; };
    FluxParts parts{{},
                    flux_clip(size, type("F16")),
                    flux_t5(size, type("F16")),
                    flux_autoencoder(size, type("F32"))};
    if (small)
      for (FileTensors* part : {&parts.clip, &parts.t5, &parts.autoencoder})
        fill_at_random(*part, 1);
    write("text_encoders/clip_l", parts.clip);
    write("text_encoders/t5xxl_fp16", parts.t5);
    write("vae/ae", parts.autoencoder);
    for (const Guidance guidance : {Guidance::embedded, Guidance::none}) {
      const std::string name = guidance == Guidance::embedded ? "flux1-dev" : "flux1-schnell";
      parts.transformer = flux_transformer(size, guidance, type("BF16"));
      if (small) fill_at_random(parts.transformer, 2);
      write("diffusion_models/" + name, parts.transformer);
      FluxParts whole = parts;
      whole.transformer = in_fp8(parts.transformer);
      whole.t5 = in_fp8(parts.t5);
      write("checkpoints/" + name + "-fp8", all_in_one(whole));
    }
    namespace fs = std::filesystem;
    fs::create_directories(models() / "tokenizers");
    fs::create_directory_symlink(shipped_model() / "tokenizer", models() / "tokenizers/clip_l");
    fs::create_directory_symlink(shipped_model() / "tokenizer_2", models() / "tokenizers/t5xxl");
  }

  std::filesystem::path models() const { return folder_ / "models"; }

  EngineOptions options() const {
    EngineOptions options = engine_options();
    options.model_dirs = {models()};
    options.output_dir = folder_ / "output";
    return options;
  }

  // The workflow as it was published.
  static Workflow load(const Engine& engine, const std::string& name) {
    return engine.load(tests_folder() / "golden/workflows" / (name + ".json"));
  }

 private:
  void write(const std::string& name, const FileTensors& tensors) const {
    const std::filesystem::path path = models() / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    if (tensors.front().bytes.empty())
      write_header_only(path, tensors);
    else
      write_safetensors(path, tensors);
  }

  TemporaryFolder folder_;
};

}  // namespace heddle::test
