// Chroma from the prompt to the picture, with ComfyUI's nodes and file names, over models whose
// weights follow from their names, against PyTorch (../goldens/make_chroma_goldens.py).
#include "tests/plugins/nodes/chroma_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/chroma_names.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct ChromaWorkflow : ChromaFixture {
  static constexpr std::size_t kTextWidth = 160;

  ChromaWorkflow() : ChromaFixture("chroma") {}

  static std::vector<FileTensor> transformer() {
    return seeded_model("transformer", false, "chroma");
  }
  void add_models() const {
    add(transformer(), "diffusion_models/chroma");
    add(encoder(), "text_encoders/t5xxl_fp16");
    add(seeded_model("z_image.vae"), "vae/ae");
  }
  static std::string clip(const std::string& file = "t5xxl_fp16",
                          const std::string& type = "chroma") {
    return cat(R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")", file,
               R"(.safetensors", "type": ")", type, R"(", "device": "default"}})");
  }
  static std::string loaders() {
    return cat(unet("chroma"), ", ", clip(),
               R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}})");
  }
  // Links to what the loaders give.
  struct Parts {
    std::string model = R"(["unet", 0])", clip = R"(["clip", 0])", vae = R"(["vae", 0])";
  };
  static std::string flow(const std::string& loaders, const Parts& parts) {
    return cat("{", loaders, ", ",
               drawing(parts.model, parts.clip, parts.vae, "EmptySD3LatentImage", 80, 48), R"(,
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})");
  }
  void compare_whole(const std::string& flow) {
    const heddle::Results results =
        run_whole(flow, {"first.value", "drawn.output", "picture.IMAGE"});
    compare(results.floats("first.value", "cross_attn"), "flow.states");
    compare_drawing(results);
  }
  std::vector<float> drawn_by(const std::string& loaders, const Parts& parts) {
    return drawn(flow(loaders, parts));
  }
  std::vector<float> states(const std::string& text, const std::string& node = "",
                            const std::string& clip_node = "clip") {
    return run_whole(cat("{", clip(), node,
                         R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": ")", text,
                         R"(", "clip": [")", clip_node, R"(", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})"),
                     {"first.value"})
        .floats("first.value", "cross_attn");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(chroma_workflows, ChromaWorkflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  add_models();
  compare_whole(flow(loaders(), Parts()));
  // Texts have no padding but what is asked for, and weigh against padding alone.
  BOOST_TEST(states("").size() == kTextWidth);
  compare(states("a photo of a (cat:1.3)"), "flow.weighted");
  const std::string options =
      R"(, "padded": {"class_type": "T5TokenizerOptions", "inputs": {"min_padding": 1, "min_length": 0, "clip": ["clip", 0]}})";
  BOOST_TEST(states("a photo of a cat", options, "padded").size() == 9 * kTextWidth);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts) {
  std::vector<FileTensor> all;
  put(all, "model.diffusion_model.", transformer());
  put(all, "text_encoders.t5xxl.transformer.", encoder());
  put(all, "vae.", seeded_model("z_image.vae"));
  add(all, "checkpoints/chroma");
  compare_whole(flow(
      R"("all": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "chroma.safetensors"}})",
      {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"}));
}

BOOST_AUTO_TEST_CASE(a_diffusers_folder_draws_as_single_files_do) {
  namespace fs = std::filesystem;
  add_models();
  const fs::path tokenizer =
      fs::path(HEDDLE_SOURCE_DIR) / "graphs/models/diffusers/tiny-scenes/tokenizer_2";
  const std::string at = "models/diffusers/tiny/";
  fs::create_directories(folder / at / "tokenizer");
  fs::create_directories(folder / "models/tokenizers/t5xxl");
  for (const fs::path& to : {folder / at / "tokenizer", folder / "models/tokenizers/t5xxl"})
    fs::copy(tokenizer, to);
  std::vector<FileTensor> named = transformer();
  name_chroma_as_diffusers(named);
  const auto part = [&](const std::string& name, const std::vector<FileTensor>& tensors) {
    add(tensors, "diffusers/tiny/" + name + "/model");
    folder.write(at + name + "/config.json", "{}");
  };
  part("transformer", named);
  part("text_encoder", encoder());
  part("vae", seeded_model("z_image.vae"));
  folder.write(at + "model_index.json",
               R"({"_class_name": "ChromaPipeline",
           "text_encoder": ["transformers", "T5EncoderModel"],
           "tokenizer": ["transformers", "T5Tokenizer"],
           "transformer": ["diffusers", "ChromaTransformer2DModel"],
           "vae": ["diffusers", "AutoencoderKL"]})");
  const std::vector<float> whole =
      drawn_by(R"("all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny"}})",
               {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"});
  BOOST_TEST(whole == drawn_by(loaders(), Parts()));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_models();
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  heddle::Engine::Data told(options);
  check_inference(told, flow(loaders(), Parts()));
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_every_name_and_eight_bits_round) {
  add_models();
  constexpr std::int64_t kHidden = 48;
  const std::vector<FileTensor> merged =
      add_lora({{"transformer.transformer_blocks.0.attn.to_k",
                 "double_blocks.0.img_attn.qkv.weight", true, kHidden, kHidden},
                {"transformer.single_transformer_blocks.1.proj_mlp",
                 "single_blocks.1.linear1.weight", true, 3 * kHidden, 4 * kHidden},
                {"transformer.distilled_guidance_layer.layers.1.linear_1",
                 "distilled_guidance_layer.layers.1.in_layer.weight"},
                {"diffusion_model.distilled_guidance_layer.out_proj",
                 "distilled_guidance_layer.out_proj.weight"},
                {"lora_unet_double_blocks_1_txt_mlp_2", "double_blocks.1.txt_mlp.2.weight", false}},
               transformer());
  add(merged, "diffusion_models/merged");
  const std::string
      rest = loaders().substr(unet("chroma").size()),
      lora =
          R"(, "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["unet", 0], "lora_name": "style.safetensors", "strength_model": 0.5}})";
  Parts patched;
  patched.model = R"(["lora", 0])";
  const std::vector<float> with_lora = drawn_by(loaders() + lora, patched);
  check_lora(with_lora, drawn_by(unet("merged") + rest, Parts()), 100);
  check_rounded(drawn_by(unet("chroma", "fp8_e4m3fn") + rest, Parts()));
}

BOOST_AUTO_TEST_CASE(a_saved_model_has_the_publishers_names_and_numbers) {
  std::vector<FileTensor> named = transformer();
  name_chroma_as_diffusers(named);
  add(named, "diffusion_models/diffusers");
  check_saved(unet("diffusers"), transformer());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  add_models();
  add(seeded_model("clip_l", false, "sd3"), "text_encoders/clip_l");
  const std::string vae =
      R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}})";
  says(engine_refusal([&] { drawn_by(cat(unet("chroma"), ", ", clip("clip_l"), vae), Parts()); }),
       {"clip_l", "chroma", "t5xxl alone"});
  says(engine_refusal(
           [&] { drawn_by(cat(unet("chroma"), ", ", clip("t5xxl_fp16", "mochi"), vae), Parts()); }),
       {"t5xxl", "'mochi'", "t5xxl with chroma"});
  says(engine_refusal(
           [&] { drawn_by(cat(unet("chroma"), ", ", clip("t5xxl_fp16", "wan"), vae), Parts()); }),
       {"t5xxl", "'wan'", "UMT5-XXL"});
  std::vector<FileTensor> wide = transformer();
  for (FileTensor& tensor : wide)
    if (tensor.name == "txt_in.weight") tensor = seeded_tensor("txt_in.weight", {48, 64});
  add(wide, "diffusion_models/chroma");
  says(engine_refusal([&] { drawn_by(loaders(), Parts()); }),
       {"160", "64", "CLIPLoader, type chroma"});
}

BOOST_AUTO_TEST_SUITE_END()
