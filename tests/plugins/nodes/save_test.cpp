// Saved models: ComfyUI's names of files and tensors whichever layout was loaded, the workflow, and
// the same bytes when they are loaded again.
#include <map>
#include <span>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/tensor/numbers.h"
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct SaveFixture : NodeFixture {
  std::filesystem::path out = folder / "out";

  // Loaders find what is saved.
  SaveFixture() {
    const auto find_in = [&](const char* kind) {
      std::filesystem::create_directories(out / kind);
      std::filesystem::create_symlink(out / kind, folder / "models" / kind);
    };
    find_in("checkpoints");
    std::filesystem::create_directories(out / "diffusion_models");
    std::filesystem::create_symlink(out / "diffusion_models",
                                    folder / "models/diffusion_models/saved");
  }

  // Names and shapes.
  using Shapes = std::map<std::string, std::vector<std::int64_t>>;
  static Shapes shapes_of(const std::filesystem::path& file, const std::string& prefix = "") {
    Shapes shapes;
    const engine::Checkpoint checkpoint = engine::open_checkpoint(file);
    for (const engine::TensorView& tensor : checkpoint.tensors())
      shapes[prefix + tensor.name] = tensor.shape;
    return shapes;
  }
  static void check_same_tensors(const std::filesystem::path& is,
                                 const std::filesystem::path& expected) {
    const engine::Checkpoint made = engine::open_checkpoint(is);
    BOOST_TEST((shapes_of(is) == shapes_of(expected)));
    const engine::Checkpoint original = engine::open_checkpoint(expected);
    for (const engine::TensorView& tensor : original.tensors()) {
      const engine::TensorView& same = made.at(tensor.name);
      BOOST_TEST((same.dtype == tensor.dtype), tensor.name);
      BOOST_TEST(
          std::equal(same.data.begin(), same.data.end(), tensor.data.begin(), tensor.data.end()),
          tensor.name);
    }
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  static std::string unet(const std::string& name, const std::string& file) {
    return node(name, "UNETLoader",
                cat(R"("unet_name": ")", file, R"(", "weight_dtype": "default")"));
  }
  static constexpr const char* kPipeline =
      R"("loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}})";
  void save(const std::string& nodes) { run_whole("{" + nodes + "}", {}); }

  // The model in a file of 32 bits, so that no sum is rounded when it is saved.
  void write_exact_model() {
    std::vector<FileTensor> tensors;
    const TensorFile small(random() / "flux_original.safetensors");
    for (const auto& [name, entry] : small.entries()) {
      std::vector<float> values(entry.bytes.size() / 2);
      engine::to_floats(engine::DType::bf16, std::as_bytes(std::span(entry.bytes)), values.data());
      tensors.push_back({name, "F32", entry.shape, bytes_of_floats(values)});
    }
    write_safetensors(folder / "models/unet/exact.safetensors", tensors);
  }
  std::vector<float> evaluate(const std::string& nodes, const std::string& model) {
    const std::string called =
        cat("\"given\": ", model, R"(, "tensors": ")", (random() / "expected.safetensors").string(),
            R"(", "prefix": "flux.")");
    return run_whole(
               cat("{", nodes, ", ", node("out", "test.call_given", called), ", ", kLook, "}"),
               {"out.outputs"})
        .floats("out.outputs", "out.1");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(saving, SaveFixture)

BOOST_AUTO_TEST_CASE(a_whole_checkpoint_is_saved_as_it_was_and_draws_the_same_picture) {
  std::vector<FileTensor> tensors = wide_autoencoder("vae.");
  for (FileTensor& tensor : clip_tensors("text_encoders.clip_l.transformer.text_model.")) {
    tensor.bytes.assign(bytes_of(tensor), '\0');
    tensors.push_back(std::move(tensor));
  }
  for (const auto& [file, prefix] : {std::pair("t5", "text_encoders.t5xxl.transformer."),
                                     {"flux_original", "model.diffusion_model."}}) {
    const TensorFile small(random() / cat(file, ".safetensors"));
    for (const auto& [name, entry] : small.entries())
      tensors.push_back({prefix + name, entry.dtype, entry.shape, entry.bytes});
  }
  write_safetensors(out / "checkpoints/given.safetensors", tensors);
  const auto picture = [&](const std::string& file, const std::string& more) {
    const std::string nodes =
        cat(node("loaded", "CheckpointLoaderSimple", cat(R"("ckpt_name": ")", file, "\"")),
            R"(, "drawn": )", ksampler(R"("model": ["loaded", 0])"), ", ",
            node("out", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["loaded", 2])"), more,
            ", ", kLook);
    return run(nodes, {"out.IMAGE"}).floats("out.IMAGE", "");
  };
  const std::vector<float> given =
      picture("given.safetensors",
              ", " + node("save", "CheckpointSave",
                          R"("model": ["loaded", 0], "clip": ["loaded", 1], "vae": ["loaded", 2],
                     "filename_prefix": "checkpoints/whole")"));
  check_same_tensors(out / "checkpoints/whole_00001_.safetensors",
                     out / "checkpoints/given.safetensors");
  BOOST_TEST((picture("whole_00001_.safetensors", "") == given));
  const engine::Checkpoint saved =
      engine::open_checkpoint(out / "checkpoints/whole_00001_.safetensors");
  const auto prompt = saved.metadata("prompt");
  BOOST_TEST_REQUIRE(prompt.has_value());
  BOOST_TEST(engine::parse_json(*prompt, "prompt").at("save").at("class_type").as_string() ==
             "CheckpointSave");
}

BOOST_AUTO_TEST_CASE(a_merged_model_is_what_is_saved) {
  write_exact_model();
  const std::string merged =
      unet("plain", "exact.safetensors") + ", " +
      node(
          "with", "LoraLoaderModelOnly",
          R"("model": ["plain", 0], "lora_name": "diffusers.safetensors", "strength_model": 1.0)") +
      ", " +
      node("merged", "ModelMergeSimple",
           R"("model1": ["plain", 0], "model2": ["with", 0], "ratio": 0.25)");
  const std::vector<float> direct = evaluate(merged, R"(["merged", 0])");
  for (int i = 0; i < 2; ++i) {
    EngineOptions options = engine_options();
    options.model_dirs = {folder / "models"};
    options.output_dir = out;
    Engine fresh(options);  // what has not changed is not saved again
    const std::string flow =
        "{" + merged + ", " +
        node("save", "ModelSave",
             R"("model": ["merged", 0], "filename_prefix": "diffusion_models/merged")") +
        "}";
    fresh.start(fresh.parse(flow)).wait();
  }
  const auto file = [&](const char* number) {
    return out / cat("diffusion_models/merged_", number, "_.safetensors");
  };
  BOOST_TEST(read_text(file("00001")) == read_text(file("00002")));
  BOOST_TEST((shapes_of(file("00001")) ==
              shapes_of(random() / "flux_original.safetensors", "model.diffusion_model.")));
  const std::vector<float> again =
      evaluate(unet("again", "saved/merged_00001_.safetensors"), R"(["again", 0])");
  BOOST_TEST((again == direct));
  BOOST_TEST((evaluate(unet("plain", "exact.safetensors"), R"(["plain", 0])") != direct));
  const engine::Checkpoint saved = engine::open_checkpoint(file("00001"));
  const auto prompt = saved.metadata("prompt");
  BOOST_TEST_REQUIRE(prompt.has_value());
  const engine::Json workflow = engine::parse_json(*prompt, "prompt");
  BOOST_TEST(workflow.at("merged").at("class_type").as_string() == "ModelMergeSimple");
}

BOOST_AUTO_TEST_CASE(parts_of_a_diffusers_folder_are_saved_as_single_files_have_them) {
  save(std::string(kPipeline) + ", " +
       node("one", "ModelSave", R"("model": ["loader", 0], "filename_prefix": "one")") + ", " +
       node("two", "CLIPSave", R"("clip": ["loader", 1], "filename_prefix": "clip/two")") + ", " +
       node("three", "VAESave", R"("vae": ["loader", 2], "filename_prefix": "three")"));
  check_same_tensors(out / "three_00001_.safetensors", random() / "vae_original.safetensors");
  check_same_tensors(out / "clip/two_t5xxl_00001_.safetensors", random() / "t5.safetensors");
  check_same_tensors(out / "clip/two_clip_l_00001_.safetensors", random() / "clip.safetensors");
  BOOST_TEST(engine::open_checkpoint(out / "clip/two_clip_l_00001_.safetensors")
                 .metadata("format")
                 .value_or("") == "pt");
  const engine::Checkpoint original =
      engine::open_checkpoint(random() / "flux_original.safetensors");
  const engine::Checkpoint made = engine::open_checkpoint(out / "one_00001_.safetensors");
  for (const engine::TensorView& tensor : made.tensors()) {
    BOOST_TEST_REQUIRE(tensor.name.starts_with("model.diffusion_model."));
    BOOST_TEST((original.at(tensor.name.substr(22)).shape == tensor.shape), tensor.name);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_saved_is_refused) {
  // Sums are not rounded to 8 bits.
  const std::string quantised =
      (tests_folder() / "plugins/goldens/quantised/flux_f8_e4m3.safetensors");
  std::filesystem::create_symlink(quantised, folder / "models/unet/f8.safetensors");
  const std::string lora =
      node("with", "LoraLoaderModelOnly",
           R"("model": ["plain", 0], "lora_name": "diffusers.safetensors", "strength_model": 1.0)");
  const std::string refused = engine_refusal([&] {
    save(unet("plain", "f8.safetensors") + ", " + lora + ", " +
         node("save", "ModelSave", R"("model": ["with", 0], "filename_prefix": "x")"));
  });
  BOOST_TEST(refused.find("to which sums are not rounded") != std::string::npos, refused);
  // Nor are packed rows made anew.
  std::filesystem::create_symlink(
      tests_folder() / "plugins/goldens/quantised/flux_packed.safetensors",
      folder / "models/unet/packed.safetensors");
  const std::string packed = engine_refusal([&] {
    save(unet("plain", "packed.safetensors") + ", " +
         node("save", "ModelSave", R"("model": ["plain", 0], "filename_prefix": "x")"));
  });
  BOOST_TEST(packed.find("is packed in rows of") != std::string::npos, packed);
  BOOST_TEST(!std::filesystem::exists(out / "x_00001_.safetensors"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
