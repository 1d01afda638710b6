// Lumina 2 from the prompt to the picture, over models whose weights follow from their names,
// against PyTorch (../goldens/make_lumina2_goldens.py); on several devices, with little memory,
// with a LoRA, and with files of other kinds.
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/merged_lora.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Lumina2Workflow : PlacedFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/lumina2/expected.safetensors"};

  static FileTensor tokenizer(const std::string& name) {
    const std::string bytes =
        read_text(tests_folder() / "plugins/encoders/tokenizer/data/bpe.model");
    return {name, "U8", {std::int64_t(bytes.size())}, bytes};
  }
  static std::vector<FileTensor> behind(const std::string& prefix, const char* model,
                                        const char* goldens) {
    std::vector<FileTensor> tensors = seeded_model(model, false, goldens);
    for (FileTensor& tensor : tensors) tensor.name = prefix + tensor.name;
    return tensors;
  }
  static std::vector<FileTensor> encoder() {
    std::vector<FileTensor> text = seeded_model("text", false, "lumina2");
    text.push_back(tokenizer("spiece_model"));
    return text;
  }
  void add_models() const {
    add("diffusion_models/lumina_2_model_bf16", seeded_model("transformer", false, "lumina2"));
    add("text_encoders/gemma_2_2b_fp16", encoder());
    add("vae/ae", seeded_model("z_image.vae"));
  }
  static std::string loaders(const std::string& unet = "lumina_2_model_bf16",
                             const std::string& clip = "gemma_2_2b_fp16",
                             const std::string& vae = "ae") {
    return cat(loaded(unet), R"(, "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")",
               clip,
               R"(.safetensors", "type": "lumina2", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")",
               vae, R"(.safetensors"}})");
  }
  // Links to what loaders give.
  struct Parts {
    std::string model = R"(["model", 0])", clip = R"(["clip", 0])", vae = R"(["vae", 0])";
  };
  static std::string flow(const std::string& loaders, const Parts& parts) {
    return cat(
        "{", loaders,
        R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a red fox in the snow", "clip": )",
        parts.clip, R"(}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": )",
        parts.clip, R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": )",
        ksampler(cat(R"("steps": 3, "cfg": 4.0, "model": )", parts.model)),
        R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": )",
        parts.vae,
        R"(}}, "look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}}})");
  }
  void check(const std::string& flow) {
    const heddle::Results results =
        run_whole(flow, {"first.value", "drawn.LATENT", "picture.IMAGE"});
    BOOST_TEST(warnings.empty());
    const double text = relative_error(results.floats("first.value", "cross_attn"),
                                       expected.floats("flow.states")),
                 latent = relative_error(results.floats("drawn.LATENT", "samples"),
                                         expected.floats("flow.latent")),
                 picture =
                     decibels(results.floats("picture.IMAGE"), expected.floats("flow.picture"));
    BOOST_TEST_MESSAGE("text " << text << ", latent " << latent << ", picture " << picture
                               << " dB");
    BOOST_TEST(text < kTolerance, "relative error " << text);
    BOOST_TEST(latent < kTolerance, "relative error " << latent);
    BOOST_TEST(picture >= 70, picture << " dB");
  }
  // Of pictures from 0 to 1.
  static double decibels(const std::vector<float>& got, const std::vector<float>& wanted) {
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    return -10 * std::log10(sum / double(got.size()));
  }
  std::vector<float> drawn(const std::string& flow) {
    return run_whole(flow, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lumina2_workflows, Lumina2Workflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_picture_equals_pytorch) {
  add_models();
  check(flow(loaders(), Parts()));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts_and_the_tokenizer_by_itself) {
  std::vector<FileTensor> all = behind("model.diffusion_model.", "transformer", "lumina2");
  for (const FileTensor& tensor : behind("text_encoders.gemma2_2b.transformer.", "text", "lumina2"))
    all.push_back(tensor);
  for (const FileTensor& tensor : behind("vae.", "z_image.vae", "workflows")) all.push_back(tensor);
  all.push_back(tokenizer("text_encoders.spiece_model"));
  add("checkpoints/NetaYumev35", all);
  check(flow(
      R"("all": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "NetaYumev35.safetensors"}})",
      {R"(["all", 0])", R"(["all", 1])", R"(["all", 2])"}));
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_both_names) {
  add_models();
  const std::string a = ".lora_A.weight", b = ".lora_B.weight";
  // Of the 48 + 24 + 24 rows of queries, keys and values; ComfyUI's names, then diffusers'.
  const std::vector<LoraTarget> modules = {
      {"diffusion_model.layers.0.attention.qkv", b, a, "layers.0.attention.qkv.weight", 0, 96},
      {"diffusion_model.noise_refiner.0.feed_forward.w2", b, a,
       "noise_refiner.0.feed_forward.w2.weight", 0, 48},
      {"lora_unet_layers_1_feed_forward_w1", ".lora_up.weight", ".lora_down.weight",
       "layers.1.feed_forward.w1.weight", 0, 192},
      {"transformer.layers.1.attn.to_k", b, a, "layers.1.attention.qkv.weight", 48, 24},
      {"transformer.layers.1.attn.to_out.0", b, a, "layers.1.attention.out.weight", 0, 48},
      {"transformer.context_refiner.0.attn.to_v", b, a, "context_refiner.0.attention.qkv.weight",
       72, 24},
      {"transformer.layers.0.feed_forward.linear_3", b, a, "layers.0.feed_forward.w3.weight", 0,
       192}};
  std::vector<FileTensor> changed = seeded_model("transformer", false, "lumina2");
  const std::vector<FileTensor> factors = merged_lora(changed, modules, 0.5f);
  add("loras/style", factors);
  add("diffusion_models/merged", changed);
  const std::vector<float> plain = drawn(flow(loaders(), Parts())),
                           merged = drawn(flow(loaders("merged"), Parts()));
  const auto with_lora = [&] {
    const std::vector<float> made = drawn(flow(
        R"("lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "style.safetensors", "strength_model": 0.5}}, )" +
            loaders(),
        {R"(["lora", 0])"}));
    BOOST_TEST(warnings.empty());
    return made;
  };
  const double error = relative_error(with_lora(), merged), moved = relative_error(merged, plain);
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
  // A module that goes unfound leaves the whole this far from what was merged.
  for (std::size_t left_out = 0; left_out < modules.size(); ++left_out) {
    std::vector<LoraTarget> fewer = modules;
    fewer.erase(fewer.begin() + std::ptrdiff_t(left_out));
    changed = seeded_model("transformer", false, "lumina2");
    merged_lora(changed, fewer, 0.5f);
    add("diffusion_models/merged", changed);
    const double lacking = relative_error(drawn(flow(loaders("merged"), Parts())), merged);
    BOOST_TEST(lacking > 10 * kTolerance, modules[left_out].name << " changed " << lacking);
  }
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes) {
  add("diffusion_models/lumina2", seeded_model("transformer", false, "lumina2"));
  write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.one.cross_attn", {1, 7, 24}),
                                                   seeded_tensor("in.two.cross_attn", {1, 4, 24})});
  const std::string nodes =
      cat(loaded("lumina2"), R"(, "one": )", text("one"), R"(, "two": )", text("two"));
  // Its weights are some 700 kB.
  hold([&](const std::string& hints) { return drawn_of(nodes, hints); }, {"layers", "data", "cfg"},
       {}, 500 << 10);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  add_models();
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, flow(loaders(), Parts()));
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_refused_before_anything_is_loaded) {
  add_models();
  const auto has = [](const std::string& refused, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(refused.find(word) != std::string::npos,
                 "'" << word << "' is not in: " << refused);
  };
  const auto says = [&](const std::string& loaders, std::initializer_list<const char*> words) {
    has(engine_refusal([&] { engine.plan(engine.parse(flow(loaders, Parts()))); }), words);
  };
  const auto link = [&](const char* from, const char* to) {
    std::filesystem::create_symlink(folder / "models" / from, folder / "models" / to);
  };
  link("text_encoders/gemma_2_2b_fp16.safetensors", "diffusion_models/text.safetensors");
  link("diffusion_models/lumina_2_model_bf16.safetensors", "text_encoders/model.safetensors");
  link("diffusion_models/lumina_2_model_bf16.safetensors", "vae/model.safetensors");
  says(loaders("text"), {"text.safetensors", "a text encoder (language_model)",
                         "not a diffusion model", "CLIPLoader"});
  says(loaders("lumina_2_model_bf16", "model"),
       {"model.safetensors", "a diffusion model (lumina2)", "not a text encoder", "UNETLoader"});
  says(loaders("lumina_2_model_bf16", "gemma_2_2b_fp16", "model"),
       {"model.safetensors", "a diffusion model (lumina2)", "not an autoencoder", "UNETLoader"});
  add("vae/small", wide_autoencoder(""));
  says(loaders("lumina_2_model_bf16", "gemma_2_2b_fp16", "small"),
       {"16 channels, the autoencoder takes 4"});
  add("text_encoders/bare", seeded_model("text", false, "lumina2"));
  has(engine_refusal([&] { drawn(flow(loaders("lumina_2_model_bf16", "bare"), Parts())); }),
      {"bare.safetensors", "gemma2", "needs its tokenizer"});
}

BOOST_AUTO_TEST_CASE(a_system_prompt_stands_before_a_prompt) {
  add("text_encoders/gemma", encoder());
  const auto encoded = [&](const std::string& node) {
    return run_whole(
               R"({"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "gemma.safetensors", "type": "lumina2"}}, "one": )" +
                   node +
                   R"(, "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}})",
               {"first.value"})
        .floats("first.value", "cross_attn");
  };
  BOOST_TEST(
      encoded(
          R"({"class_type": "CLIPTextEncodeLumina2", "inputs": {"system_prompt": "alignment", "user_prompt": "a fox", "clip": ["clip", 0]}})") ==
      encoded(
          R"({"class_type": "CLIPTextEncode", "inputs": {"text": "You are an assistant designed to generate high-quality images with the highest degree of image-text alignment based on textual prompts. <Prompt Start> a fox", "clip": ["clip", 0]}})"));
}

BOOST_AUTO_TEST_SUITE_END()
