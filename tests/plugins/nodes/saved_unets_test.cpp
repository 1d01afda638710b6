// Checkpoints of Stable Diffusion and SDXL that are saved: under the names of these kinds, with
// what says how they were trained; loaded again they draw the same.
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/unet_models.h"

namespace heddle::test {
namespace {

using engine::cat;

struct SavedUnets : NodeFixture {
  std::vector<FileTensor> checkpoint;

  // Loaders find what is saved.
  SavedUnets() {
    std::filesystem::create_directories(folder / "out/checkpoints");
    std::filesystem::create_symlink(folder / "out/checkpoints", folder / "models/checkpoints");
  }

  void add(const std::string& prefix, std::vector<FileTensor> tensors) {
    for (FileTensor& tensor : tensors) {
      tensor.name = prefix + tensor.name;
      checkpoint.push_back(std::move(tensor));
    }
  }
  void write(const std::string& kind, const std::vector<const char*>& marks = {}) {
    std::vector<FileTensor> unet = unet_model(kind);
    name_unet_as_original(unet, kind == "sd1" ? 2 : 1, "model.diffusion_model.");
    add("", std::move(unet));
    add("first_stage_model.", unet_model("vae"));
    if (kind == "sd1") add("cond_stage_model.transformer.", unet_model("clip_l"));
    if (kind == "sd2") add("", as_open_clip(unet_model("clip_h"), "cond_stage_model.model."));
    if (kind == "sdxl") {
      add("conditioner.embedders.0.transformer.", unet_model("clip_l"));
      add("", as_open_clip(unet_model("clip_g"), "conditioner.embedders.1.model."));
    }
    if (kind == "refiner")
      add("", as_open_clip(unet_model("clip_g"), "conditioner.embedders.0.model."));
    for (const char* mark : marks) checkpoint.push_back({mark, "F32", {0}, ""});
    write_safetensors(folder / "out/checkpoints/given.safetensors", checkpoint);
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  static std::string loader(const std::string& file) {
    return node("model", "CheckpointLoaderSimple", cat(R"("ckpt_name": ")", file, "\""));
  }
  static std::string saving(const std::string& model = "model", const std::string& clip = "model",
                            const std::string& output = "1") {
    return node("save", "CheckpointSave",
                cat(R"("model": [")", model, R"(", 0], "clip": [")", clip, "\", ", output,
                    R"(], "vae": ["model", 2], "filename_prefix": "checkpoints/saved")"));
  }
  // A picture by the model of a file.
  std::vector<float> picture(const std::string& file, const std::string& more = "",
                             const std::string& vae = R"(["model", 2])",
                             const std::string& sampler = R"("steps": 2)") {
    const std::string flow =
        cat("{", loader(file), more,
            node("one", "CLIPTextEncode", R"("text": "a photo of a cat", "clip": ["model", 1])"),
            node("two", "CLIPTextEncode", R"("text": "", "clip": ["model", 1])"),
            node("empty", "EmptyLatentImage", R"("width": 32, "height": 32, "batch_size": 1)"),
            R"("drawn": )", ksampler(sampler), ", ",
            node("out", "VAEDecode", cat(R"("samples": ["drawn", 0], "vae": )", vae)), kLook, "}");
    const std::vector<float> found = run_whole(flow, {"out.IMAGE"}).floats("out.IMAGE", "");
    for (const std::string& warning : warnings) BOOST_TEST(warning == "");
    return found;
  }
  // Without those of the autoencoder, which is given with the names of diffusers.
  std::set<std::string> names_in(const char* file) const {
    std::set<std::string> names;
    const engine::Checkpoint read = engine::open_checkpoint(folder / "out/checkpoints" / file);
    for (const engine::TensorView& tensor : read.tensors())
      if (!tensor.name.starts_with("first_stage_model.")) names.emplace(tensor.name);
    return names;
  }
};

constexpr const char* kSaved = "saved_00001_.safetensors";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(saved_unets, SavedUnets)

BOOST_AUTO_TEST_CASE(checkpoints_keep_the_names_of_their_kind_and_draw_the_same,
                     *boost::unit_test::label("long")) {
  for (const char* kind : {"sd1", "sd2", "sdxl", "refiner"}) {
    checkpoint.clear();
    std::filesystem::remove(folder / "out/checkpoints" / kSaved);
    write(kind);
    const std::vector<float> given = picture("given.safetensors", saving());
    BOOST_TEST((names_in(kSaved) == names_in("given.safetensors")), kind);
    BOOST_TEST((picture(kSaved) == given), kind);
  }
}

// Behind "transformer.", where ComfyUI reads them, too.
BOOST_AUTO_TEST_CASE(encoders_with_the_names_of_transformers_are_found_again,
                     *boost::unit_test::label("long")) {
  write("sd2");
  std::filesystem::create_directories(folder / "models/text_encoders");
  write_safetensors(folder / "models/text_encoders/clip_h.safetensors", unet_model("clip_h"));
  const std::vector<float> given =
      picture("given.safetensors",
              node("alone", "CLIPLoader",
                   R"("clip_name": "clip_h.safetensors", "type": "stable_diffusion")") +
                  saving("model", "alone", "0"));
  BOOST_TEST(names_in(kSaved).count("cond_stage_model.model.transformer.text_model."
                                    "final_layer_norm.weight") == 1);
  BOOST_TEST((picture(kSaved) == given));
}

// What ModelSamplingDiscrete says is kept, too.
BOOST_AUTO_TEST_CASE(how_an_sdxl_was_trained_is_kept, *boost::unit_test::label("long")) {
  using Marks = std::vector<const char*>;
  for (const Marks& marks :
       {Marks{"v_pred"}, Marks{"v_pred", "ztsnr"}, Marks{"edm_mean", "edm_std"}}) {
    checkpoint.clear();
    std::filesystem::remove(folder / "out/checkpoints" / kSaved);
    write("sdxl", marks);
    const std::vector<float> given = picture("given.safetensors", saving());
    BOOST_TEST((names_in(kSaved) == names_in("given.safetensors")), marks.back());
    BOOST_TEST((picture(kSaved) == given), marks.back());
  }
  checkpoint.clear();
  std::filesystem::remove(folder / "out/checkpoints" / kSaved);
  write("sdxl");
  picture("given.safetensors",
          node("other", "ModelSamplingDiscrete",
               R"("model": ["model", 0], "sampling": "v_prediction", "zsnr": true)") +
              saving("other"));
  BOOST_TEST((names_in(kSaved).count("v_pred") == 1 && names_in(kSaved).count("ztsnr") == 1));
}

// Numbers, not marks: the ends of the noise levels, of a file and of a node.
BOOST_AUTO_TEST_CASE(continuous_levels_of_an_sdxl_are_kept, *boost::unit_test::label("long")) {
  write("sdxl");
  checkpoint.push_back({"edm_vpred.sigma_max", "F32", {1}, bytes_of_floats({80})});
  checkpoint.push_back({"edm_vpred.sigma_min", "F32", {1}, bytes_of_floats({0.01f})});
  write_safetensors(folder / "out/checkpoints/given.safetensors", checkpoint);
  const std::vector<float> given = picture("given.safetensors", saving());
  BOOST_TEST((names_in(kSaved) == names_in("given.safetensors")));
  BOOST_TEST((picture(kSaved) == given));
  std::filesystem::remove(folder / "out/checkpoints" / kSaved);
  checkpoint.resize(checkpoint.size() - 2);
  write_safetensors(folder / "out/checkpoints/given.safetensors", checkpoint);
  BOOST_TEST((picture("given.safetensors") != given));
  picture("given.safetensors",
          node("other", "ModelSamplingContinuousEDM",
               R"("model": ["model", 0], "sampling": "v_prediction", "sigma_max": 80.0,
                  "sigma_min": 0.01)") +
              saving("other"));
  BOOST_TEST((picture(kSaved) == given));
}

// Playground's latents have statistics of their own, whatever file the autoencoder is of.
BOOST_AUTO_TEST_CASE(an_autoencoder_of_its_own_file_takes_the_models_statistics) {
  write("sdxl", {"edm_mean", "edm_std"});
  write_safetensors(folder / "models/vae/alone.safetensors", unet_model("vae"));
  const std::string alone = node("vae", "VAELoader", R"("vae_name": "alone.safetensors")");
  const auto differ = [&](const std::string& sampler, const auto& encoding) {
    const std::vector<float> own =
        picture("given.safetensors", encoding(R"(["model", 2])"), R"(["model", 2])", sampler);
    return relative_error(
        picture("given.safetensors", alone + encoding(R"(["vae", 0])"), R"(["vae", 0])", sampler),
        own);
  };
  BOOST_TEST(differ(R"("steps": 2)", [](const char*) { return ""; }) == 0);
  const double error =
      differ(R"("steps": 2, "denoise": 0.5, "latent_image": ["encoded", 0])", [&](const char* vae) {
        return node("grey", "EmptyImage",
                    R"("width": 32, "height": 32, "batch_size": 1, "color": 8421631)") +
               node("encoded", "VAEEncode", cat(R"("pixels": ["grey", 0], "vae": )", vae));
      });
  BOOST_TEST(error < 1e-5, "relative error " << error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
