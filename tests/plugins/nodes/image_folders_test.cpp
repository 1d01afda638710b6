// The models of Qwen-Image and Z-Image out of diffusers folders and whole checkpoints: what PyTorch
// makes of them (../goldens/make_workflow_goldens.py).
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct ImageFolders : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/workflows/expected.safetensors"};

  // A part of a diffusers folder: its config, and the model's tensors with their names changed.
  template <class Rename>
  void add_part(const std::string& part, const std::string& config, std::vector<FileTensor> tensors,
                Rename&& rename) const {
    for (FileTensor& tensor : tensors) tensor.name = rename(tensor.name);
    const std::string at = "models/diffusers/tiny/" + part;
    std::filesystem::create_directories(folder / at);
    folder.write(at + "/config.json", config);
    write_safetensors(folder / at / "model.safetensors", tensors);
  }
  void write_pipeline() const {
    const auto same = [](const std::string& name) { return name; };
    add_part("transformer", R"({"axes_dims_rope": [16, 4, 4]})",
             seeded_model("qwen_image.transformer"), same);
    add_part(
        "text_encoder",
        R"({"model_type": "qwen2_5_vl", "head_dim": 7, "text_config": {"model_type": "qwen2_5_vl_text",
            "head_dim": 128, "rope_theta": 1e6}})",
        seeded_model("qwen_image.text"), [](const std::string& name) {
          return "model.language_model." + name.substr(std::string("model.").size());
        });
    std::filesystem::create_directories(folder / "models/diffusers/tiny/scheduler");
    add_part("vae", "{}", seeded_model("qwen_image.vae", true), same);
    folder.write("models/diffusers/tiny/scheduler/scheduler_config.json",
                 R"({"use_dynamic_shifting": true, "max_shift": 0.9})");
    folder.write("models/diffusers/tiny/model_index.json",
                 R"({"_class_name": "QwenImagePipeline",
           "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
           "text_encoder": ["transformers", "Qwen2_5_VLForConditionalGeneration"],
           "tokenizer": ["transformers", "Qwen2Tokenizer"],
           "transformer": ["diffusers", "QwenImageTransformer2DModel"],
           "vae": ["diffusers", "AutoencoderKLQwenImage"]})");
  }
  void write_checkpoint() const {
    std::vector<FileTensor> all;
    const std::pair<const char*, const char*> parts[] = {
        {"z_image.transformer", "model.diffusion_model."},
        {"z_image.text", "text_encoders.qwen3_4b.transformer."},
        {"z_image.vae", "vae."}};
    for (const auto& [model, prefix] : parts)
      for (FileTensor& tensor : seeded_model(model)) {
        tensor.name = prefix + tensor.name;
        all.push_back(std::move(tensor));
      }
    std::filesystem::create_directories(folder / "models/checkpoints");
    write_safetensors(folder / "models/checkpoints/z.safetensors", all);
  }

  // The loader gives MODEL, CLIP, VAE.
  heddle::Results draw(const std::string& loader, const std::string& sampling) {
    const auto text = [](const std::string& prompt) {
      return R"({"class_type": "CLIPTextEncode", "inputs": {"text": ")" + prompt +
             R"(", "clip": ["model", 1]}})";
    };
    return run_whole(
        R"({"model": )" + loader + R"(, "one": )" +
            text("a photo of a (red fox:1.1) in the snow, soft light") + R"(, "two": )" +
            text(" ") +
            R"(, "shifted": {"class_type": "ModelSamplingAuraFlow", "inputs": {"model": ["model", 0], "shift": 3.1}},
        "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
        "out": )" +
            ksampler(sampling) +
            R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["out", 0], "vae": ["model", 2]}},
        "look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})",
        {"out.LATENT", "picture.IMAGE"});
  }
  void compare(const heddle::Results& results, const std::string& family) const {
    const double latent = relative_error(results.floats("out.LATENT", "samples"),
                                         expected.floats(family + ".latent")),
                 picture = relative_error(results.floats("picture.IMAGE"),
                                          expected.floats(family + ".picture"));
    BOOST_TEST(latent < kTolerance, family << ": relative error " << latent);
    BOOST_TEST(picture < kTolerance, family << ": relative error of the picture " << picture);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(image_folders, ImageFolders)

BOOST_AUTO_TEST_CASE(a_diffusers_folder_of_qwen_image_needs_no_files_of_a_tokenizer) {
  write_pipeline();
  compare(draw(R"({"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny"}})",
               R"("model": ["shifted", 0], "steps": 3, "cfg": 2.5)"),
          "qwen_image");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_z_image_holds_all_its_parts) {
  write_checkpoint();
  compare(
      draw(R"({"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "z.safetensors"}})",
           R"("steps": 3, "cfg": 1)"),
      "z_image");
}

BOOST_AUTO_TEST_SUITE_END()
