// LoraSave: weights as a LoRA file, against what NumPy makes of them (make_extract_goldens.py).
#include <numeric>
#include <span>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/tensor/numbers.h"
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct ExtractFixture : NodeFixture {
  static constexpr std::int64_t kWidth = 320;
  std::filesystem::path out = folder / "out";

  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  static std::string unet(const std::string& name, const std::string& file) {
    return node(name, "UNETLoader",
                cat(R"("unet_name": ")", file, R"(", "weight_dtype": "default")"));
  }
  static std::string lora_save(const std::string& more, const std::string& type = "standard",
                               bool bias = true, int rank = 4) {
    return node("save", "LoraSave",
                cat(R"("filename_prefix": "lora", "rank": )", rank, R"(, "lora_type": ")", type,
                    R"(", "bias_diff": )", bias ? "true" : "false", more));
  }
  engine::Checkpoint saved(const std::string& nodes) {
    std::filesystem::remove(out / "lora_00001_.safetensors");
    run_whole("{" + nodes + "}", {});
    return engine::open_checkpoint(out / "lora_00001_.safetensors");
  }

  // One layer of CLIP-L's kind, wide enough that its singular vectors are found by iteration: zeros
  // but for what the golden file was made of.
  void write_encoder() {
    std::vector<FileTensor> tensors = clip_tensors();
    for (FileTensor& tensor : tensors) {
      for (std::int64_t& side : tensor.shape)
        if (side == 64 || side == 128) side *= kWidth / 64;
      tensor.dtype = "F32";
      const std::int64_t count = std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                                 std::int64_t{1}, std::multiplies<>());
      std::vector<float> values(std::size_t(count), 0.0f);
      const bool is_given = tensor.name.find("mlp.fc1.") != std::string::npos ||
                            tensor.name.ends_with("mlp.fc2.weight") ||
                            tensor.name.ends_with("layer_norm1.weight");
      std::uint32_t state = 0;
      for (const char c : tensor.name) state += static_cast<unsigned char>(c);
      for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        if (is_given) value = (float(state >> 8) / float(1u << 24) - 0.5f) * 0.2f;
      }
      tensor.bytes = bytes_of_floats(values);
    }
    write_safetensors(folder / "models/text_encoders/wide.safetensors", tensors);
  }
  static std::vector<float> floats_of(const engine::TensorView& tensor) {
    std::vector<float> values(tensor.data.size() / engine::dtype_size(tensor.dtype));
    engine::to_floats(tensor.dtype, tensor.data, values.data());
    return values;
  }
};

constexpr const char* kWide =
    R"("wide": {"class_type": "CLIPLoader", "inputs": {"clip_name": "wide.safetensors", "type": "stable_diffusion"}})";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(extracting, ExtractFixture)

BOOST_AUTO_TEST_CASE(matrices_become_the_factors_that_numpy_makes) {
  write_encoder();
  const engine::Checkpoint made =
      saved(unet("plain", "guided.safetensors") + ", " + kWide + ", " +
            lora_save(R"(, "model_diff": ["plain", 0], "text_encoder_diff": ["wide", 0])"));
  const engine::Checkpoint expected =
      engine::open_checkpoint(here() / "extract_goldens.safetensors");
  for (const engine::TensorView& golden : expected.tensors()) {
    const engine::TensorView* tensor = made.find(golden.name);
    BOOST_TEST_REQUIRE((tensor != nullptr), golden.name);
    BOOST_TEST((tensor->shape == golden.shape), golden.name);
    BOOST_TEST((tensor->dtype == engine::DType::f16), golden.name);
    const double error = relative_error(floats_of(*tensor), floats_of(golden));
    BOOST_TEST(error < 1e-3, golden.name << ": relative error " << error);
  }
  for (const engine::TensorView& tensor : made.tensors())
    if (expected.find(tensor.name) == nullptr) {
      BOOST_TEST(tensor.name.starts_with("text_encoders.clip_l.transformer.text_model."),
                 tensor.name);
      const std::vector<float> values = floats_of(tensor);
      BOOST_TEST(std::ranges::count(values, 0.0f) == std::ptrdiff_t(values.size()), tensor.name);
    }
  BOOST_TEST(made.find("text_encoders.clip_l.transformer.text_model.encoder.layers.0.self_attn."
                       "q_proj.lora_up.weight") != nullptr);
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_CASE(a_difference_that_is_saved_whole_makes_one_model_of_the_other) {
  const std::string difference =
      unet("plain", "plain.safetensors") + ", " +
      node(
          "with", "LoraLoaderModelOnly",
          R"("model": ["plain", 0], "lora_name": "diffusers.safetensors", "strength_model": 1.0)") +
      ", " +
      node("less", "ModelMergeSubtract",
           R"("model1": ["with", 0], "model2": ["plain", 0], "multiplier": 1.0)");
  const engine::Checkpoint whole =
      saved(difference + ", " + lora_save(R"(, "model_diff": ["less", 0])", "full_diff"));
  for (const engine::TensorView& tensor : whole.tensors()) {
    BOOST_TEST(tensor.name.starts_with("diffusion_model."), tensor.name);
    BOOST_TEST((tensor.name.ends_with(".diff") || tensor.name.ends_with(".diff_b")), tensor.name);
    BOOST_TEST((tensor.dtype == engine::DType::f16), tensor.name);
  }
  std::filesystem::copy_file(out / "lora_00001_.safetensors",
                             folder / "models/loras/whole.safetensors");
  const auto latent = [&](const std::string& model) {
    const std::string again =
        node("again", "LoraLoaderModelOnly",
             R"("model": ["model", 0], "lora_name": ")" + model + R"(", "strength_model": 1.0)");
    return run(again + ", \"out\": " + ksampler(R"("model": ["again", 0], "cfg": 1)") + ", " +
                   kLook,
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  // The difference is rounded to half precision.
  BOOST_TEST(relative_error(latent("whole.safetensors"), latent("diffusers.safetensors")) < 1e-3);
  const std::size_t all = whole.tensors().size();
  const engine::Checkpoint weights =
      saved(difference + ", " + lora_save(R"(, "model_diff": ["less", 0])", "full_diff", false));
  BOOST_TEST(weights.tensors().size() < all);
  for (const engine::TensorView& tensor : weights.tensors())
    BOOST_TEST(tensor.name.ends_with(".diff"), tensor.name);
}

BOOST_AUTO_TEST_CASE(factors_beyond_the_rank_of_a_difference_add_nothing) {
  const engine::Checkpoint made = saved(
      unet("plain", "plain.safetensors") + ", " +
      node(
          "with", "LoraLoaderModelOnly",
          R"("model": ["plain", 0], "lora_name": "diffusers.safetensors", "strength_model": 1.0)") +
      ", " +
      node("less", "ModelMergeSubtract",
           R"("model1": ["with", 0], "model2": ["plain", 0], "multiplier": 1.0)") +
      ", " + lora_save(R"(, "model_diff": ["less", 0])", "standard", false, 8));
  std::size_t checked = 0;
  for (const engine::TensorView& tensor : made.tensors()) {
    BOOST_TEST(
        (tensor.name.ends_with(".lora_up.weight") || tensor.name.ends_with(".lora_down.weight")),
        tensor.name);
    // The LoRA's rank is 4.
    if (!tensor.name.ends_with(".img_mlp.0.lora_up.weight")) continue;
    BOOST_TEST_REQUIRE(tensor.shape.back() == 8);
    const std::vector<float> values = floats_of(tensor);
    float used = 0, rest = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      (i % 8 < 4 ? used : rest) = std::max(i % 8 < 4 ? used : rest, std::abs(values[i]));
    BOOST_TEST(used > 0.01f, tensor.name);
    BOOST_TEST(rest < 1e-4f * used, tensor.name);
    ++checked;
  }
  BOOST_TEST(checked == 2u);
}

BOOST_AUTO_TEST_CASE(nothing_given_is_nothing_saved) {
  run_whole("{" + lora_save("") + "}", {});
  BOOST_TEST(!std::filesystem::exists(out / "lora_00001_.safetensors"));
}

BOOST_AUTO_TEST_CASE(weights_of_8_bits_are_refused) {
  std::filesystem::create_symlink(
      tests_folder() / "plugins/goldens/quantised/flux_f8_e4m3.safetensors",
      folder / "models/unet/f8.safetensors");
  for (const char* type : {"standard", "full_diff"}) {
    const std::string refused = engine_refusal([&] {
      saved(unet("plain", "f8.safetensors") + ", " +
            lora_save(R"(, "model_diff": ["plain", 0])", type));
    });
    BOOST_TEST(refused.find("to which sums are not rounded") != std::string::npos, refused);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
