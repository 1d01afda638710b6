// A guided run of a tiny Qwen-Image against one written out in PyTorch
// (../goldens/make_qwen_image_goldens.py), the units of its latents, and a LoRA.
#include "tests/plugins/nodes/node_fixture.h"

using namespace heddle::test;

namespace {

struct QwenFixture : NodeFixture {
  TensorFile expected{golden()};

  static std::filesystem::path folder() { return tests_folder() / "plugins/goldens/qwen_image"; }
  static std::filesystem::path golden() { return folder() / "expected.safetensors"; }

  // "<name>.safetensors" among the diffusion models, with the tensors in another shape where
  // wanted.
  template <class Change>
  void add_model(const std::string& name, Change&& change) const {
    std::vector<FileTensor> tensors;
    const TensorFile all(folder() / "transformer/diffusion_pytorch_model.safetensors");
    for (const auto& [tensor, entry] : all.entries()) {
      tensors.push_back({tensor, entry.dtype, entry.shape, entry.bytes});
      change(tensors.back());
    }
    write_safetensors(folder_of_models() / (name + ".safetensors"), tensors);
  }
  std::filesystem::path folder_of_models() const {
    return NodeFixture::folder / "models/diffusion_models";
  }

  static std::string loader(const std::string& name) {
    return R"("model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + name +
           R"(.safetensors", "weight_dtype": "default"}})";
  }
  static std::string given(const std::string& type, const std::string& field,
                           const std::string& name) {
    return R"({"class_type": ")" + type + R"(", "inputs": {"path": ")" + golden().string() +
           "\", \"" + field + "\": \"" + name + "\"" +
           (field == "prefix" ? R"(, "option": "")" : "") + "}}";
  }

  std::vector<float> sample(const std::string& nodes, const std::string& changes) {
    const std::string flow =
        "{" + nodes + R"(, "one": )" + given("test.conditioning", "prefix", "in.long") +
        R"(, "two": )" + given("test.conditioning", "prefix", "in.short") + R"(, "latent": )" +
        given("test.latent", "name", "latent.raw") +
        R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}})" +
        R"(, "out": )" + ksampler(changes) + ", " + kLook + "}";
    return run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen_image_nodes, QwenFixture)

BOOST_AUTO_TEST_CASE(guided_sampling_takes_two_texts_of_unlike_length_and_flux_levels) {
  // A single file does not tell the rotary axes: those taken for heads of 24 are the model's.
  add_model("qwen", [](FileTensor&) {});
  const double error = relative_error(sample(loader("qwen"), R"("steps": 3, "cfg": 2.5)"),
                                      expected.floats("sampled"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_raw_latent_is_scaled_by_the_mean_and_deviation_of_each_channel) {
  // 16 latent channels; nothing is drawn.
  add_model("wide", [](FileTensor& tensor) {
    const bool in = tensor.name == "img_in.weight", out = tensor.name.starts_with("proj_out.");
    if (!in && !out) return;
    tensor.shape[in ? 1 : 0] = 64;
    tensor.bytes.assign(bytes_of(tensor), '\0');
  });
  const double error =
      relative_error(sample(loader("wide"), R"("denoise": 0, "latent_image": ["latent", 0])"),
                     expected.floats("latent.scaled"));
  BOOST_TEST(error < 1e-6, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_behind_the_prefix_of_a_checkpoint) {
  add_model("prefixed",
            [](FileTensor& tensor) { tensor.name = "model.diffusion_model." + tensor.name; });
  std::filesystem::create_symlink(folder() / "lora.safetensors",
                                  NodeFixture::folder / "models/loras/qwen.safetensors");
  const std::string flow =
      "{" + loader("prefixed") +
      R"(, "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0],
             "lora_name": "qwen.safetensors", "strength_model": 0.5}},
           "out": {"class_type": "test.call_given", "inputs": {"given": ["lora", 0], "tensors": ")" +
      golden().string() + R"(", "prefix": "wide."}}, )" + kLook + "}";
  // Fast kernels keep the sum as bf16, which is what the file has; the plain loops keep all of f32.
  heddle::EngineOptions options = heddle::test::engine_options();
  options.compute[test_device_kind()] = "f32";
  options.reference_kernels = true;
  options.model_dirs = {NodeFixture::folder / "models"};
  heddle::Engine exact(options);
  const heddle::Results results = exact.start(exact.parse(flow), {{}, {"out.outputs"}}).wait();
  const double error =
      relative_error(results.floats("out.outputs", "out.2"), expected.floats("lora.out"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_SUITE_END()
