// Runs of small UNets whose weights follow from their names, with nodes between the loader and the
// sampler: two guided steps, on one device or on several.
#pragma once

#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/unet_fixture.h"
#include "tests/support/unet_controls.h"

namespace heddle::test {

struct PatchedUnet : UnetWorkflow {
  const FakeControl control;
  const TensorFile wanted{tests_folder() / "plugins/goldens/unet/patches.safetensors"};

  // What runs of a kind of UNet read.
  void add_kind(const std::string& kind) const {
    if (std::filesystem::exists(folder / "models/diffusion_models" / (kind + ".safetensors")))
      return;
    write_file(engine::cat("diffusion_models/", kind), unet_model(kind));
    const int width = kind == "sdxl" ? 128 : 64;
    write_safetensors(folder / engine::cat("texts", width, ".safetensors"),
                      {seeded_tensor("in.one.cross_attn", {1, 7, width}),
                       seeded_tensor("in.one.pooled_output", {1, 64}),
                       seeded_tensor("in.two.cross_attn", {1, 4, width}),
                       seeded_tensor("in.two.pooled_output", {1, 64})});
  }
  // A node of a model, from one name to another.
  static std::string patch(const char* type, const std::string& inputs, const char* from = "loaded",
                           const char* to = "model") {
    return node(
        to, type,
        engine::cat(R"("model": [")", from, R"(", 0])", inputs.empty() ? "" : ", ", inputs));
  }
  std::string text(const std::string& kind, const char* name) const {
    const int width = kind == "sdxl" ? 128 : 64;
    return node(
        name, "test.conditioning",
        engine::cat(R"("path": ")", (folder / engine::cat("texts", width, ".safetensors")).string(),
                    R"(", "prefix": "in.)", name, R"(", "option": "")"));
  }
  // patches: from "loaded" to "model". hints: of the sampler.
  std::string flow(const std::string& kind, const std::string& patches, int items = 1,
                   const std::string& hints = "") const {
    add_kind(kind);
    return engine::cat(
        "{",
        node("loaded", "UNETLoader",
             engine::cat(R"("unet_name": ")", kind, R"(.safetensors", "weight_dtype": "default")")),
        patches, text(kind, "one"), text(kind, "two"),
        node("empty", "EmptyLatentImage",
             engine::cat(R"("width": 128, "height": 64, "batch_size": )", items)),
        R"("drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
            "steps": 2, "cfg": 4.0, "sampler_name": "euler", "scheduler": "normal",
            "positive": ["one", 0], "negative": ["two", 0], "latent_image": ["empty", 0],
            "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})");
  }
  std::vector<float> draw(const std::string& kind, const std::string& patches) {
    return run_whole(flow(kind, patches), {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
  void equal(const std::string& kind, const std::string& name, const std::string& patches) {
    const std::vector<float> latent = draw(kind, patches);
    const double error = relative_error(latent, wanted.floats(kind + "." + name));
    BOOST_TEST_MESSAGE(kind << " " << name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, kind << " " << name << ": relative error " << error);
    const double change = relative_error(latent, wanted.floats(kind + ".plain"));
    BOOST_TEST(change > 100 * kTolerance, kind << " " << name << ": changed by " << change);
  }

  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions options = engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  static std::vector<float> drawn_with(EngineOptions options, const std::string& whole) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(whole), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  }
  // Two items on two devices, in each mode, and with few bytes.
  void hold(const std::string& kind, const std::string& patches, std::uint64_t budget) const {
    const std::vector<float> alone = drawn_with(options_for({"cpu:0"}), flow(kind, patches, 2));
    const auto equals = [&](const std::vector<float>& other) {
      return other.size() == alone.size() &&
             std::memcmp(other.data(), alone.data(), 4 * alone.size()) == 0;
    };
    for (const char* mode : {"layers", "data", "cfg"}) {
      const std::string hints =
          engine::cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
      BOOST_TEST(
          equals(drawn_with(options_for({"fake:0", "fake:1"}), flow(kind, patches, 2, hints))),
          kind << ", " << mode);
    }
    BOOST_TEST(equals(drawn_with(options_for({"fake:0"}, budget), flow(kind, patches, 2))),
               kind << ", little memory");
  }
};

}  // namespace heddle::test
