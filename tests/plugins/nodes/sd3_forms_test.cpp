// Stable Diffusion 3 and 3.5 on several devices and with little memory, with LoRA files by every
// name that its modules have, and out of a diffusers folder.
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/merged_lora.h"
#include "tests/support/sd3_models.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Sd3Forms : PlacedFixture {
  void write_texts(std::int64_t width, std::int64_t pooled) const {
    write_safetensors(folder / "texts.safetensors",
                      {seeded_tensor("in.one.cross_attn", {1, 7, width}),
                       seeded_tensor("in.one.pooled_output", {1, pooled}, "one"),
                       seeded_tensor("in.two.cross_attn", {1, 7, width}),
                       seeded_tensor("in.two.pooled_output", {1, pooled}, "two")});
  }
  std::string nodes(const std::string& file) const {
    return cat(loaded(file), R"(, "one": )", text("one"), R"(, "two": )", text("two"));
  }
  void write_folder() const {
    const auto part = [&](const std::string& name, const std::string& config,
                          const std::vector<FileTensor>& tensors) {
      const std::string at = "models/diffusers/sd3/" + name;
      std::filesystem::create_directories(folder / at);
      folder.write(at + "/config.json", config);
      write_safetensors(folder / at / "model.safetensors", tensors);
    };
    std::vector<FileTensor> transformer = sd3_transformer("drawn");
    name_sd3_as_diffusers(transformer);
    part("transformer", "{}", transformer);
    part("text_encoder", R"({"model_type": "clip_text_model"})",
         seeded_model("clip_l", false, "sd3"));
    part("text_encoder_2", R"({"model_type": "clip_text_model"})",
         seeded_model("clip_g", false, "sd3"));
    part("text_encoder_3", R"({"model_type": "t5"})", seeded_model("t5xxl", false, "sd3"));
    part("vae", R"({"scaling_factor": 1.5305, "shift_factor": 0.0609})",
         seeded_model("vae", false, "sd3"));
    const std::filesystem::path from = tests_folder() / "plugins/nodes/pipeline";
    for (const auto& [to, source] :
         {std::pair("tokenizer", "tokenizer"), std::pair("tokenizer_2", "tokenizer"),
          std::pair("tokenizer_3", "tokenizer_2")})
      std::filesystem::copy(from / source, folder / "models/diffusers/sd3" / to);
    std::filesystem::create_directories(folder / "models/diffusers/sd3/scheduler");
    folder.write("models/diffusers/sd3/scheduler/scheduler_config.json", R"({"shift": 3.0})");
    folder.write("models/diffusers/sd3/model_index.json",
                 R"({"_class_name": "StableDiffusion3Pipeline",
           "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
           "text_encoder": ["transformers", "CLIPTextModelWithProjection"],
           "text_encoder_2": ["transformers", "CLIPTextModelWithProjection"],
           "text_encoder_3": ["transformers", "T5EncoderModel"],
           "tokenizer": ["transformers", "CLIPTokenizer"],
           "tokenizer_2": ["transformers", "CLIPTokenizer"],
           "tokenizer_3": ["transformers", "T5TokenizerFast"],
           "transformer": ["diffusers", "SD3Transformer2DModel"],
           "vae": ["diffusers", "AutoencoderKL"]})");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sd3_forms, Sd3Forms)

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes) {
  add("diffusion_models/sd3", sd3_transformer("medium"));
  write_texts(24, 20);
  // Its weights are some 6 MB.
  hold([&](const std::string& hints) { return drawn_of(nodes("sd3"), hints); },
       {"layers", "data", "cfg"}, {}, 4 << 20);
}

BOOST_AUTO_TEST_CASE(modules_are_found_by_the_publishers_diffusers_and_kohyas_names) {
  constexpr std::int64_t d = 128;
  const std::string a = ".lora_A.weight", b = ".lora_B.weight", up = ".lora_up.weight",
                    down = ".lora_down.weight";
  std::vector<FileTensor> model = sd3_transformer("medium");
  add("diffusion_models/sd3", model);
  const std::vector<FileTensor> lora =
      merged_lora(model,
                  {{"transformer.transformer_blocks.0.attn.to_k", b, a,
                    "joint_blocks.0.x_block.attn.qkv.weight", d, d},
                   {"transformer.transformer_blocks.1.attn.add_v_proj", b, a,
                    "joint_blocks.1.context_block.attn.qkv.weight", 2 * d, d},
                   {"transformer.transformer_blocks.0.attn2.to_q", b, a,
                    "joint_blocks.0.x_block.attn2.qkv.weight", 0, d},
                   {"transformer.transformer_blocks.2.ff.net.0.proj", b, a,
                    "joint_blocks.2.x_block.mlp.fc1.weight", 0, 4 * d},
                   {"diffusion_model.joint_blocks.1.x_block.mlp.fc2", b, a,
                    "joint_blocks.1.x_block.mlp.fc2.weight", 0, d},
                   {"lora_unet_joint_blocks_0_context_block_attn_proj", up, down,
                    "joint_blocks.0.context_block.attn.proj.weight", 0, d},
                   {"lora_unet_joint_blocks_2_x_block_attn_qkv", up, down,
                    "joint_blocks.2.x_block.attn.qkv.weight", 0, 3 * d}},
                  0.5f);
  add("loras/sd3", lora);
  add("diffusion_models/merged", model);
  write_texts(24, 20);
  const auto drawn = [&](const std::string& file, bool with_lora) {
    std::string flow = drawn_of(nodes(file), "");
    if (with_lora) {
      const std::string from = R"("inputs": {"model": ["model", 0], "seed")";
      flow.replace(flow.find(from), from.size(), R"("inputs": {"model": ["patched", 0], "seed")");
      flow.insert(
          1,
          R"("patched": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0],
          "lora_name": "sd3.safetensors", "strength_model": 0.5}}, )");
    }
    return draw(options_for({"cpu:0"}), flow);
  };
  const std::vector<float> with_lora = drawn("sd3", true);
  const double error = relative_error(with_lora, drawn("merged", false)),
               moved = relative_error(with_lora, drawn("sd3", false));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
}

// Its texts by its own tokenizers; the same model and autoencoder in single files give the same.
BOOST_AUTO_TEST_CASE(a_diffusers_folder_gives_what_single_files_give) {
  write_folder();
  add("diffusion_models/sd3", sd3_transformer("drawn"));
  add("vae/sd3", seeded_model("vae", false, "sd3"));
  const auto drawn = [&](const char* model, const char* vae) {
    return run_whole(
        cat(R"({"all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "sd3"}}, )",
            loaded("sd3"),
            R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "sd3.safetensors"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a cat", "clip": ["all", 1]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 1}},
      "out": {"class_type": "KSampler", "inputs": {"model": [)",
            model, R"(, 0], "seed": 1, "steps": 2, "cfg": 1.0, "sampler_name": "euler",
        "scheduler": "simple", "positive": ["one", 0], "negative": ["one", 0],
        "latent_image": ["empty", 0], "denoise": 1.0}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["out", 0], "vae": [)",
            vae,
            R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})"),
        {"picture.IMAGE", "first.value"});
  };
  const heddle::Results folder_results = drawn(R"("all")", R"("all", 2)");
  BOOST_TEST(folder_results.shape("first.value", "cross_attn").back() == 160);
  BOOST_TEST(folder_results.shape("first.value", "pooled_output").back() == 128);
  const std::vector<float> of_folder = folder_results.floats("picture.IMAGE");
  BOOST_TEST(are_equal(of_folder, drawn(R"("model")", R"("vae", 0)").floats("picture.IMAGE")));
}

BOOST_AUTO_TEST_SUITE_END()
