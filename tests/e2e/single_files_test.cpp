// The shipped model saved as single files and as one checkpoint gives its folder's bytes at every
// stage, for the same tokens and the same noise levels.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "tests/e2e/flux_folder.h"
#include "tests/e2e/single_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

namespace {

struct SingleFiles {
  TemporaryFolder folder;
  TensorFile golden{tests_folder() / "plugins/goldens/stages/stages.safetensors"};

  SingleFiles() {
    const FluxParts parts = original_parts(shipped_model());
    const FileMetadata metadata = latent_metadata(shipped_model());
    write("diffusion_models/tiny", parts.transformer);
    write("text_encoders/tiny_clip_l", parts.clip);
    write("text_encoders/tiny_t5xxl", parts.t5);
    write("vae/tiny_ae", parts.autoencoder, metadata);
    FileTensors whole = all_in_one(parts);
    // The shipped encoder has no projection.
    std::erase_if(whole,
                  [](const FileTensor& t) { return t.name.ends_with("text_projection.weight"); });
    write("checkpoints/tiny", whole, metadata);
    std::filesystem::create_directories(folder / "tokenizers");
    std::filesystem::create_directory_symlink(shipped_model() / "tokenizer",
                                              folder / "tokenizers/clip_l");
    std::filesystem::create_directory_symlink(shipped_model() / "tokenizer_2",
                                              folder / "tokenizers/t5xxl");
  }

  void write(const std::string& name, const FileTensors& tensors,
             const FileMetadata& metadata = {}) {
    const std::filesystem::path path = folder / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors, metadata);
  }

  // Row `row` of a golden tensor along axis 0, under another name.
  FileTensor input(const std::string& name, const std::string& from, std::int64_t row = 0) const {
    const TensorFile::Entry& entry = golden.at(from);
    FileTensor tensor{name, entry.dtype, entry.shape, {}};
    const std::size_t bytes = entry.bytes.size() / std::size_t(entry.shape[0]);
    tensor.shape[0] = 1;
    tensor.bytes = entry.bytes.substr(bytes * std::size_t(row), bytes);
    return tensor;
  }

  // The folder's part with its config.json, and the single file, which has none.
  std::pair<heddle::Results, heddle::Results> both(ModelProbe& probe, const char* part,
                                                   const char* file, const char* role,
                                                   const std::vector<FileTensor>& inputs) {
    const std::filesystem::path path = folder / "inputs.safetensors";
    write_safetensors(path, inputs);
    return {probe.call({shipped_model() / part, role,
                        read_text(shipped_model() / part / "config.json"), path, ""}),
            probe.call({folder / file, role, "", path, ""})};
  }
};

void require_same_bytes(const std::vector<float>& a, const std::vector<float>& b,
                        const std::string& what) {
  BOOST_REQUIRE_MESSAGE(!a.empty() && a.size() == b.size(),
                        what << ": " << a.size() << " and " << b.size() << " numbers");
  const bool same = std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  BOOST_TEST(same, what << ": relative difference " << relative_error(b, a));
}

void compare(const std::pair<heddle::Results, heddle::Results>& both, const std::string& output) {
  const auto floats = [&](const heddle::Results& r) {
    return r.floats("model.outputs", output + ".0");
  };
  require_same_bytes(floats(both.first), floats(both.second), output);
}

// Sampling from the folder, from single files and from the checkpoint: one text, one table of noise
// levels. The scheduler_config of the folder asks for a shift of 2, which the files cannot say.
std::string sampled_three_ways(const std::string& prompt, const std::string& seed, int steps) {
  std::string flow = R"({
    "folder": {"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny-scenes"}},
    "unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "tiny.safetensors", "weight_dtype": "default"}},
    "ae": {"class_type": "VAELoader", "inputs": {"vae_name": "tiny_ae.safetensors"}},
    "whole": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "tiny.safetensors"}},
    "files_shifted": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["unet", 0], "shift": 2.0}},
    "whole_shifted": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["whole", 0], "shift": 2.0}},
    "text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["folder", 1], "text": ")" +
                     prompt + R"("}},
    "no_text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["folder", 1], "text": ""}},
    "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 256, "height": 256, "batch_size": 1}})";
  const auto draw = [&](const char* name, const char* model, const char* vae) {
    flow +=
        std::string(", \"") + name + R"(": {"class_type": "KSampler", "inputs": {"model": [")" +
        model +
        R"(", 0], "positive": ["text", 0], "negative": ["no_text", 0], "latent_image": ["empty", 0], "seed": )" +
        seed + ", \"steps\": " + std::to_string(steps) +
        R"(, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}}, ")" +
        name + R"(_picture": {"class_type": "VAEDecode", "inputs": {"samples": [")" + name +
        R"(", 0], "vae": )" + vae + "}}, \"" + name +
        R"(_end": {"class_type": "test.look", "inputs": {"value": [")" + name +
        R"(_picture", 0]}})";
  };
  draw("a", "folder", R"(["folder", 2])");
  draw("b", "files_shifted", R"(["ae", 0])");
  draw("c", "whole_shifted", R"(["whole", 2])");
  return flow + "}";
}

heddle::EngineOptions options_of(const SingleFiles& files, const char* compute) {
  heddle::EngineOptions options = engine_options();
  options.compute = {{"cpu", compute}};
  options.model_dirs = {files.folder.path()};
  return options;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(single_files, SingleFiles)

BOOST_AUTO_TEST_CASE(both_encoders_give_the_folders_states_for_every_prompt) {
  ModelProbe probe;
  for (std::int64_t row = 0; row < golden.at("ids.clip").shape[0]; ++row) {
    const auto clip =
        both(probe, "text_encoder", "text_encoders/tiny_clip_l.safetensors", "text_encoder",
             {input("ids", "ids.clip", row), input("eos", "eos.clip", row)});
    for (const char* output : {"last_hidden", "penultimate", "pooled"}) compare(clip, output);
    compare(both(probe, "text_encoder_2", "text_encoders/tiny_t5xxl.safetensors", "text_encoder",
                 {input("ids", "ids.t5", row)}),
            "last_hidden");
  }
}

BOOST_AUTO_TEST_CASE(the_velocity_is_the_folders) {
  ModelProbe probe;
  compare(both(probe, "transformer", "diffusion_models/tiny.safetensors", "diffusion_model",
               {input("x", "first.latent"), input("timestep", "first.level"),
                input("context", "first.t5"), input("y", "pooled")}),
          "out");
}

BOOST_AUTO_TEST_CASE(the_autoencoder_decodes_and_encodes_as_the_folders) {
  ModelProbe probe;
  const auto decoded =
      both(probe, "vae", "vae/tiny_ae.safetensors", "vae.decoder", {input("z", "latents.0")});
  compare(decoded, "image");
  const FileTensor image{"image", "F32", decoded.first.shape("model.outputs", "image.0"),
                         bytes_of_floats(decoded.first.floats("model.outputs", "image.0"))};
  const auto encoded = both(probe, "vae", "vae/tiny_ae.safetensors", "vae.encoder", {image});
  for (const char* output : {"mean", "logvar"}) compare(encoded, output);
}

BOOST_AUTO_TEST_CASE(latents_and_pictures_are_the_folders_whatever_holds_the_weights) {
  for (const auto& [compute, prompt, seed] :
       {std::tuple("f32", "a whale in the middle on the sea", "18446744073709551615"),
        std::tuple("bf16", "a red house on the left", "1")}) {
    heddle::Engine engine(options_of(*this, compute));
    const heddle::Results results =
        engine
            .start(engine.parse(sampled_three_ways(prompt, seed, 4)),
                   {{},
                    {"a.LATENT", "b.LATENT", "c.LATENT", "a_picture.IMAGE", "b_picture.IMAGE",
                     "c_picture.IMAGE"}})
            .wait();
    for (const char* other : {"b", "c"}) {
      require_same_bytes(results.floats("a.LATENT", "samples"),
                         results.floats(std::string(other) + ".LATENT", "samples"),
                         std::string(compute) + ", latents of " + other);
      require_same_bytes(results.floats("a_picture.IMAGE"),
                         results.floats(std::string(other) + "_picture.IMAGE"),
                         std::string(compute) + ", picture of " + other);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
