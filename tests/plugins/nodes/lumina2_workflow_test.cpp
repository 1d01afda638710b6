// Lumina 2 from the prompt to the latent, over models whose weights follow from their names,
// against PyTorch (../goldens/make_lumina2_goldens.py).
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct Lumina2Workflow : NodeFixture {
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
  // loaders: the nodes "model" and whatever `clip` is an output of.
  void check(const std::string& loaders, const std::string& clip) {
    const heddle::Results results = run_whole(
        "{" + loaders +
            R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a red fox in the snow", "clip": )" +
            clip + R"(}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": )" +
            clip + R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": )" +
            ksampler(R"("steps": 3, "cfg": 4.0)") +
            R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})",
        {"first.value", "drawn.LATENT"});
    BOOST_TEST(warnings.empty());
    const double text = relative_error(results.floats("first.value", "cross_attn"),
                                       expected.floats("flow.states")),
                 latent = relative_error(results.floats("drawn.LATENT", "samples"),
                                         expected.floats("flow.latent"));
    BOOST_TEST_MESSAGE("text " << text << ", latent " << latent);
    BOOST_TEST(text < kTolerance, "relative error " << text);
    BOOST_TEST(latent < kTolerance, "relative error " << latent);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lumina2_workflows, Lumina2Workflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_latent_equals_pytorch) {
  write_safetensors(folder / "models/diffusion_models/lumina_2_model_bf16.safetensors",
                    seeded_model("transformer", false, "lumina2"));
  std::vector<FileTensor> text = seeded_model("text", false, "lumina2");
  text.push_back(tokenizer("spiece_model"));
  write_safetensors(folder / "models/text_encoders/gemma_2_2b_fp16.safetensors", text);
  check(
      R"("model": {"class_type": "UNETLoader", "inputs": {"unet_name": "lumina_2_model_bf16.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "gemma_2_2b_fp16.safetensors", "type": "lumina2", "device": "default"}})",
      R"(["clip", 0])");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts_and_the_tokenizer_by_itself) {
  std::vector<FileTensor> all = behind("model.diffusion_model.", "transformer", "lumina2");
  for (const FileTensor& tensor : behind("text_encoders.gemma2_2b.transformer.", "text", "lumina2"))
    all.push_back(tensor);
  for (const FileTensor& tensor : behind("vae.", "z_image.vae", "workflows")) all.push_back(tensor);
  all.push_back(tokenizer("text_encoders.spiece_model"));
  std::filesystem::create_directories(folder / "models/checkpoints");
  write_safetensors(folder / "models/checkpoints/NetaYumev35.safetensors", all);
  check(
      R"("model": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "NetaYumev35.safetensors"}})",
      R"(["model", 1])");
}

BOOST_AUTO_TEST_CASE(a_system_prompt_stands_before_a_prompt) {
  std::vector<FileTensor> text = seeded_model("text", false, "lumina2");
  text.push_back(tokenizer("spiece_model"));
  write_safetensors(folder / "models/text_encoders/gemma.safetensors", text);
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
