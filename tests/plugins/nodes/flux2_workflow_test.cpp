// FLUX.2 klein from the prompt to the picture, with the nodes and file names of ComfyUI's
// templates, over models whose weights follow from their names, against PyTorch
// (../goldens/make_flux2_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct Flux2WorkflowFixture : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/flux2/expected.safetensors"};

  Flux2WorkflowFixture() {
    add("transformer", "diffusion_models/flux-2-klein-base-4b");
    add("text", "text_encoders/qwen_3_4b");
    add("vae", "vae/flux2-vae");
  }
  void add(const char* model, const std::string& name) const {
    write_safetensors(folder / "models" / (name + ".safetensors"),
                      seeded_model(model, false, "flux2"));
  }
  // The template's graph; more: nodes besides; positive, negative: nodes that are drawn by.
  static std::string flow(const std::string& more = "", const std::string& positive = "one",
                          const std::string& negative = "two") {
    return R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "flux-2-klein-base-4b.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_3_4b.safetensors", "type": "flux2", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "flux2-vae.safetensors"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": ["clip", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["clip", 0]}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "second": {"class_type": "test.first", "inputs": {"list": ["two", 0]}},
      "look_a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "look_b": {"class_type": "test.look", "inputs": {"value": ["second", 0]}},
      "guider": {"class_type": "CFGGuider", "inputs": {"model": ["model", 0], "positive": [")" +
           positive + R"(", 0], "negative": [")" + negative + R"(", 0], "cfg": 2.5}},
      "sigmas": {"class_type": "Flux2Scheduler", "inputs": {"steps": 3, "width": 80, "height": 48}},
      "sampler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "empty": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["sampler", 0], "sigmas": ["sigmas", 0], "latent_image": ["empty", 0]}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})" +
           more + "}";
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const std::vector<float> wanted = expected.floats(golden);
    BOOST_TEST_REQUIRE(got.size() >= wanted.size());
    const double error =
        relative_error({got.begin(), got.begin() + std::ptrdiff_t(wanted.size())}, wanted);
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  // In decibels, of pictures from 0 to 1.
  double psnr(const std::vector<float>& got, const std::string& golden) const {
    const std::vector<float> wanted = expected.floats(golden);
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    return -10 * std::log10(sum / double(got.size()));
  }
};

constexpr const char* kShown =
    R"(, "colour": {"class_type": "EmptyImage", "inputs": {"width": 48, "height": 32, "batch_size": 1, "color": 4227264}},
      "shown": {"class_type": "VAEEncode", "inputs": {"pixels": ["colour", 0], "vae": ["vae", 0]}},
      "with": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["one", 0], "latent": ["shown", 0]}},
      "without": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["two", 0], "latent": ["shown", 0]}})";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux2_workflows, Flux2WorkflowFixture)

BOOST_AUTO_TEST_CASE(klein_from_the_prompt_to_the_picture_equals_pytorch) {
  const heddle::Results results =
      run_whole(flow(), {"first.value", "second.value", "drawn.output", "picture.IMAGE"});
  BOOST_TEST(warnings.empty());
  using Shape = std::vector<std::int64_t>;
  // Completed by padding, whose states the model sees.
  BOOST_TEST(results.shape("first.value", "cross_attn") == (Shape{1, 512, 72}));
  compare(results.floats("first.value", "cross_attn"), "flow.states");
  compare(results.floats("second.value", "cross_attn"), "flow.negative");
  compare(results.floats("drawn.output", "samples"), "flow.latent");
  const double decibels = psnr(results.floats("picture.IMAGE"), "flow.picture");
  BOOST_TEST_MESSAGE(decibels << " dB");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

BOOST_AUTO_TEST_CASE(a_picture_that_klein_is_shown_lies_where_pytorch_puts_it) {
  const heddle::Results results = run_whole(flow(kShown, "with", "without"), {"drawn.output"});
  compare(results.floats("drawn.output", "samples"), "flow.edited");
  const double moved =
      relative_error(results.floats("drawn.output", "samples"), expected.floats("flow.latent"));
  BOOST_TEST(moved > 10 * kTolerance, "the picture changed " << moved);
}

// By each conditioning, which was shown it.
BOOST_AUTO_TEST_CASE(what_klein_made_of_a_picture_serves_the_whole_run) {
  const auto kept = [](std::string text) {
    const std::string model = R"("inputs": {"model": ["model", 0], "positive")";
    return text.replace(text.find(model), model.size(),
                        R"("inputs": {"model": ["kept", 0], "positive")");
  };
  const std::string nodes =
      std::string(kShown) +
      R"(, "kept": {"class_type": "FluxKVCache", "inputs": {"model": ["model", 0]}})";
  const std::string whole = kept(flow(nodes, "with", "without"));
  const std::vector<float> drawn =
      run_whole(whole, {"drawn.output"}).floats("drawn.output", "samples");
  compare(drawn, "flow.kept");
  BOOST_TEST(relative_error(drawn, expected.floats("flow.edited")) > 10 * kTolerance);
  heddle::EngineOptions told = engine_options();
  told.compute = {{"cpu", "f32"}};
  told.model_dirs.push_back(folder / "models");
  told.output_dir = folder / "told";
  heddle::Engine::Data data(told);
  check_inference(data, whole);
  // Without a picture there is nothing to keep.
  compare(run_whole(kept(flow(nodes)), {"drawn.output"}).floats("drawn.output", "samples"),
          "flow.latent");
}

BOOST_AUTO_TEST_CASE(an_empty_latent_of_other_models_becomes_one_of_flux2) {
  std::string usual = flow();
  const std::string empty = "EmptyFlux2LatentImage";
  usual.replace(usual.find(empty), empty.size(), "EmptyLatentImage");
  compare(run_whole(usual, {"drawn.output"}).floats("drawn.output", "samples"), "flow.latent");
}

BOOST_AUTO_TEST_CASE(models_of_other_families_are_refused_before_anything_runs) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto refusal = [&](const std::string& flow) {
    return engine_refusal([&] { engine.plan(engine.parse(flow)); });
  };
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  // An encoder of a width that the model does not read: states of one layer.
  says(refusal(replaced(flow(), R"("type": "flux2")", R"("type": "lumina2")")),
       {"24 wide", "flux2", "reads 72", "CLIPLoader, type flux2"});
  // An autoencoder of other latents.
  write_safetensors(folder / "models/vae/ae.safetensors", seeded_model("z_image.vae"));
  says(refusal(replaced(flow(), "flux2-vae", "ae")), {"128 channels, the autoencoder takes 16"});
  // An encoder with fewer layers than are read.
  write_safetensors(folder / "models/text_encoders/short.safetensors",
                    seeded_model("z_image.text"));
  says(refusal(replaced(flow(), "qwen_3_4b", "short")),
       {"short.safetensors", "3 layers", "layer 27"});
}

BOOST_AUTO_TEST_SUITE_END()
