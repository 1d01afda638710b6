// Lumina 2 from the prompt to the latent, over models whose weights follow from their names,
// against PyTorch (../goldens/make_lumina2_goldens.py).
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

BOOST_FIXTURE_TEST_SUITE(lumina2_workflows, NodeFixture)

BOOST_AUTO_TEST_CASE(lumina2_from_the_prompt_to_the_latent_equals_pytorch) {
  const std::filesystem::path goldens_folder = tests_folder() / "plugins/goldens/lumina2";
  const TensorFile expected(goldens_folder / "expected.safetensors");
  write_safetensors(folder / "models/diffusion_models/lumina_2_model_bf16.safetensors",
                    seeded_model("transformer", false, "lumina2"));
  write_safetensors(folder / "models/text_encoders/gemma_2_2b_fp16.safetensors",
                    seeded_model("text", false, "lumina2"));
  std::filesystem::create_directories(folder / "models/tokenizers/gemma2");
  std::filesystem::copy(goldens_folder / "tokenizer.json",
                        folder / "models/tokenizers/gemma2/tokenizer.json");
  const heddle::Results results = run_whole(
      R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "lumina_2_model_bf16.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "gemma_2_2b_fp16.safetensors", "type": "lumina2", "device": "default"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a red fox in the snow", "clip": ["clip", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["clip", 0]}},
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

BOOST_AUTO_TEST_SUITE_END()
