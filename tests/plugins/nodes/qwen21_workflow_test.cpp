// Qwen-Image 2.1 from the prompt to the latent, over models whose weights follow from their names,
// against PyTorch (../goldens/make_qwen21_goldens.py); divided over devices, the same bytes, or
// nearly the same numbers.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Qwen21Workflow : NodeFixture {
  const FakeControl control;
  TensorFile expected{tests_folder() / "plugins/goldens/qwen21/expected.safetensors"};

  Qwen21Workflow() {
    std::filesystem::create_directories(folder / "models/diffusion_models");
    write_safetensors(folder / "models/diffusion_models/qwen_image_2.1.safetensors",
                      seeded_model("transformer", false, "qwen21"));
    write_safetensors(folder / "models/text_encoders/qwen3vl_8b.safetensors",
                      seeded_model("text", false, "qwen21"));
  }
  static std::string flow(const std::string& sampling, const std::string& hints = "") {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "qwen_image_2.1.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_8b.safetensors", "type": "qwen_image", "device": "default"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": ["clip", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["clip", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 96, "height": 64, "batch_size": 1}},
      "drawn": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 3,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0],
        "latent_image": ["empty", 0], "denoise": 1.0, )",
        sampling, hints,
        R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})");
  }
  heddle::EngineOptions options_for(std::vector<std::string> devices) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    heddle::EngineOptions options = engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(kFakePlugin);
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  static std::vector<float> draw(heddle::EngineOptions options, const std::string& hints) {
    heddle::Engine engine(std::move(options));
    return engine.start(engine.parse(flow(R"("cfg": 2.5})", hints)), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen21_workflows, Qwen21Workflow)

BOOST_AUTO_TEST_CASE(from_the_prompt_to_the_latent_equals_pytorch) {
  const heddle::Results results = run_whole(flow(R"("cfg": 1})"), {"first.value", "drawn.LATENT"});
  BOOST_TEST(warnings.empty());
  const double text = relative_error(results.floats("first.value", "cross_attn"),
                                     expected.floats("flow.states")),
               latent = relative_error(results.floats("drawn.LATENT", "samples"),
                                       expected.floats("flow.latent"));
  BOOST_TEST_MESSAGE("text " << text << ", latent " << latent);
  BOOST_TEST(text < kTolerance, "relative error " << text);
  BOOST_TEST(latent < kTolerance, "relative error " << latent);
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}), "");
  BOOST_TEST(alone.size() == 8u * 4 * 6);
  for (const char* mode : {"layers", "cfg"}) {
    const std::vector<float> parted =
        draw(options_for({"fake:0", "fake:1"}),
             cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"));
    BOOST_TEST_REQUIRE(parted.size() == alone.size());
    BOOST_TEST(std::memcmp(parted.data(), alone.data(), 4 * alone.size()) == 0, mode);
  }
  const double error = relative_error(draw(options_for({"fake:0", "fake:1"}),
                                           R"(, "parallel": "tensor", "device": "fake:0,fake:1")"),
                                      alone);
  BOOST_TEST(error < kTolerance, "tensor: relative error " << error);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(told, flow(R"("cfg": 2.5})"));
}

BOOST_AUTO_TEST_SUITE_END()
