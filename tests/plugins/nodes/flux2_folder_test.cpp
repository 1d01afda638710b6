// FLUX.2 dev out of a diffusers folder, with its language model and guidance, against what PyTorch
// makes of the same weights (../goldens/make_flux2_goldens.py).
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct Flux2Folder : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/flux2/expected.safetensors"};

  void add_part(const std::string& part, const std::string& config, const char* model) const {
    const std::string at = "models/diffusers/dev/" + part;
    std::filesystem::create_directories(folder / at);
    folder.write(at + "/config.json", config);
    write_safetensors(folder / at / "model.safetensors", seeded_model(model, false, "flux2"));
  }
  void write_pipeline() const {
    add_part("transformer", "{}", "dev.transformer");
    add_part("vae", "{}", "vae");
    add_part("text_encoder",
             R"({"model_type": "mistral3", "text_config": {"model_type": "mistral", "head_dim": 16,
                 "rope_theta": 1e9, "rms_norm_eps": 1e-5}})",
             "dev.text");
    for (const char* part : {"tokenizer", "scheduler"})
      std::filesystem::create_directories(folder / "models/diffusers/dev" / part);
    std::filesystem::copy(tests_folder() / "plugins/goldens/flux2/tokenizer.json",
                          folder / "models/diffusers/dev/tokenizer/tokenizer.json");
    folder.write("models/diffusers/dev/scheduler/scheduler_config.json",
                 R"({"use_dynamic_shifting": true, "max_shift": 1.15})");
    folder.write("models/diffusers/dev/model_index.json",
                 R"({"_class_name": "Flux2Pipeline",
           "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
           "text_encoder": ["transformers", "Mistral3ForConditionalGeneration"],
           "tokenizer": ["transformers", "PixtralProcessor"],
           "transformer": ["diffusers", "Flux2Transformer2DModel"],
           "vae": ["diffusers", "AutoencoderKLFlux2"]})");
  }
  // sampling: the nodes "guided" (a conditioning) and "drawn".
  static std::string flow(const std::string& sampling) {
    return R"({"all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "dev"}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": ["all", 1]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "guided": {"class_type": "FluxGuidance", "inputs": {"conditioning": ["text", 0], "guidance": 4.0}},
      "empty": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 1}}, )" +
           sampling +
           R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})";
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux2_folder, Flux2Folder)

BOOST_AUTO_TEST_CASE(dev_encodes_and_draws_as_pytorch_does) {
  write_pipeline();
  const heddle::Results results = run_whole(
      flow(
          R"("guider": {"class_type": "BasicGuider", "inputs": {"model": ["all", 0], "conditioning": ["guided", 0]}},
      "sigmas": {"class_type": "Flux2Scheduler", "inputs": {"steps": 2, "width": 48, "height": 32}},
      "sampler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["sampler", 0], "sigmas": ["sigmas", 0], "latent_image": ["empty", 0]}})"),
      {"first.value", "drawn.output"});
  BOOST_TEST(warnings.empty());
  const std::vector<float> states = results.floats("first.value", "cross_attn"),
                           last = expected.floats("dev_flow.states");
  BOOST_TEST_REQUIRE(states.size() > last.size());
  const double text =
                   relative_error({states.end() - std::ptrdiff_t(last.size()), states.end()}, last),
               latent = relative_error(results.floats("drawn.output", "samples"),
                                       expected.floats("dev_flow.latent"));
  BOOST_TEST_MESSAGE("text " << text << ", latent " << latent);
  BOOST_TEST(text < kTolerance, "relative error " << text);
  BOOST_TEST(latent < kTolerance, "relative error " << latent);
}

// The folder's schedule is told of sizes and steps; KSampler takes ComfyUI's shift, 2.02.
BOOST_AUTO_TEST_CASE(a_folders_scheduler_does_not_change_the_shift) {
  write_pipeline();
  const auto sigmas = [&](const std::string& scheduler) {
    return run_whole(
               R"({"all": {"class_type": "DiffusersLoader", "inputs": {"model_path": "dev"}}, )" +
                   scheduler +
                   R"(, "look": {"class_type": "test.look", "inputs": {"value": ["s", 0]}}})",
               {"s.SIGMAS"})
        .floats("s.SIGMAS");
  };
  const std::string basic = R"("s": {"class_type": "BasicScheduler", "inputs": {"model": [")";
  const std::string rest = R"(", 0], "scheduler": "simple", "steps": 2, "denoise": 1.0}})";
  const std::vector<float> own = sigmas(basic + "all" + rest);
  const std::vector<float> shifted = sigmas(
      R"("m": {"class_type": "ModelSamplingFlux", "inputs": {"model": ["all", 0], "max_shift": 2.02, "base_shift": 2.02, "width": 1024, "height": 1024}}, )" +
      basic + "m" + rest);
  BOOST_TEST(own == shifted);
}

BOOST_AUTO_TEST_SUITE_END()
