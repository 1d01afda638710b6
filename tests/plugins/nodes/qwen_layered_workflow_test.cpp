// Qwen-Image-Layered from a picture to its layers, with the nodes and the file names of ComfyUI's
// example, over models whose weights follow from their names, against PyTorch
// (../goldens/make_qwen_layered_goldens.py); divided over devices, the same bytes, or nearly the
// same numbers.
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct LayeredWorkflow : PlacedFixture {
  const std::filesystem::path layered = tests_folder() / "plugins/goldens/qwen_layered";
  TensorFile expected{layered / "expected.safetensors"};

  LayeredWorkflow() {
    input_dir = layered;
    add("diffusion_models/qwen_image_layered_bf16",
        seeded_model("transformer", false, "qwen_layered"));
    add("text_encoders/qwen_2.5_vl_7b_fp8_scaled", seeded_model("qwen_image.text"));
    add("vae/qwen_image_layered_vae", seeded_model("vae", false, "qwen_layered"));
  }
  // A node of a workflow behind others.
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  // `hints` of the sampler; `shown`: the conditionings that it takes.
  static std::string flow(const std::string& hints = "", const std::string& shown = "shown",
                          const std::string& more = "") {
    return cat(
        R"({"unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "qwen_image_layered_bf16.safetensors", "weight_dtype": "default"}})",
        node("model", "ModelSamplingAuraFlow", R"("model": ["unet", 0], "shift": 1.0)"),
        node(
            "clip", "CLIPLoader",
            R"("clip_name": "qwen_2.5_vl_7b_fp8_scaled.safetensors", "type": "qwen_image", "device": "default")"),
        node("vae", "VAELoader", R"("vae_name": "qwen_image_layered_vae.safetensors")"),
        node("loaded", "LoadImage", R"("image": "whole.png")"),
        node("whole", "ImageScaleToMaxDimension",
             R"("image": ["loaded", 0], "upscale_method": "lanczos", "largest_size": 80)"),
        node("size", "GetImageSize", R"("image": ["whole", 0])"),
        node("coded", "VAEEncode", R"("pixels": ["whole", 0], "vae": ["vae", 0])"),
        node(
            "text.one", "CLIPTextEncode",
            R"("clip": ["clip", 0], "text": "a photo of a (red fox:1.1) in the snow, soft light")"),
        node("text.two", "CLIPTextEncode", R"("clip": ["clip", 0], "text": " ")"),
        node("shown.one", "ReferenceLatent",
             R"("conditioning": ["text.one", 0], "latent": ["coded", 0])"),
        node("shown.two", "ReferenceLatent",
             R"("conditioning": ["text.two", 0], "latent": ["coded", 0])"),
        node("empty", "EmptyQwenImageLayeredLatentImage",
             R"("width": ["size", 0], "height": ["size", 1], "layers": 2, "batch_size": 1)"),
        more,
        node(
            "out", "KSampler",
            cat(R"("model": ["model", 0], "seed": 7, "steps": 3, "cfg": 2.5, "sampler_name": "euler",
          "scheduler": "simple", "latent_image": ["empty", 0], "denoise": 1.0, "positive": [")",
                shown, R"(.one", 0], "negative": [")", shown, R"(.two", 0])", hints)),
        node("cut", "LatentCutToBatch", R"("samples": ["out", 0], "dim": "t", "slice_size": 1)"),
        node("layers", "VAEDecode", R"("samples": ["cut", 0], "vae": ["vae", 0])"),
        node("saved", "SaveImage", R"("images": ["layers", 0], "filename_prefix": "layers")"), "}");
  }
  // golden: each `step`-th row of pictures that are 80 pixels wide.
  void hold_pictures(const std::vector<float>& whole, const char* golden, std::size_t step) const {
    const std::vector<float> rows = expected.floats(golden);
    const std::size_t row = std::size_t{80} * 4;
    BOOST_TEST_REQUIRE(whole.size() == step * rows.size());
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double difference = double(whole[i / row * step * row + i % row]) - double(rows[i]);
      sum += difference * difference;
    }
    const double decibels = -10 * std::log10(sum / double(rows.size()));
    BOOST_TEST_MESSAGE(golden << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, golden << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen_layered_workflows, LayeredWorkflow)

BOOST_AUTO_TEST_CASE(layers_of_a_picture_equal_pytorch) {
  heddle::Engine engine(options_for({"cpu:0"}));
  const heddle::Results drawn =
      engine.start(engine.parse(flow()), {{}, {"out.LATENT", "layers.IMAGE"}}).wait();
  const std::vector<float> latent = drawn.floats("out.LATENT", "samples"),
                           wanted = expected.floats("flow.latent");
  BOOST_TEST((drawn.shape("out.LATENT", "samples") == std::vector<std::int64_t>{1, 16, 3, 6, 10}));
  const double error = relative_error(latent, wanted);
  BOOST_TEST_MESSAGE("latent: relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);

  BOOST_TEST((drawn.shape("layers.IMAGE") == std::vector<std::int64_t>{3, 48, 80, 4}));
  hold_pictures(drawn.floats("layers.IMAGE"), "flow.layers", 4);
}

// As in ComfyUI: who does not cut them apart has a video.
BOOST_AUTO_TEST_CASE(layers_that_are_not_cut_apart_are_a_video_with_alpha) {
  const std::string text =
      flow("", "shown",
           node("video", "VAEDecode", R"("samples": ["out", 0], "vae": ["vae", 0])") +
               node("look", "test.look", R"("value": ["video", 0])"));
  heddle::Engine engine(options_for({"cpu:0"}));
  const heddle::Results drawn = engine.start(engine.parse(text), {{}, {"video.IMAGE"}}).wait();
  BOOST_TEST((drawn.shape("video.IMAGE") == std::vector<std::int64_t>{9, 48, 80, 4}));
  hold_pictures(drawn.floats("video.IMAGE"), "flow.video", 8);
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.one.cross_attn", {1, 7, 24}),
                                                   seeded_tensor("in.two.cross_attn", {1, 4, 24})});
  const auto drawn = [&](const std::string& hints) {
    std::string nodes = loaded("qwen_image_layered_bf16") +
                        node("empty", "EmptyQwenImageLayeredLatentImage",
                             R"("width": 48, "height": 32, "layers": 2, "batch_size": 2)") +
                        node("coded", "test.latent",
                             cat(R"("path": ")", (layered / "expected.safetensors").string(),
                                 R"(", "name": "vae_encoder.mean")"));
    for (const char* name : {"one", "two"})
      nodes += cat(", \"text.", name, "\": ", text(name)) +
               node(name, "ReferenceLatent",
                    cat(R"("conditioning": ["text.)", name, R"(", 0], "latent": ["coded", 0])"));
    std::string whole = drawn_of(nodes, hints);
    const std::string plain =
        R"("empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},)";
    const std::size_t at = whole.find(plain);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    return whole.erase(at, plain.size());
  };
  // Its weights are some 700 kB.
  hold(drawn, {"layers", "data", "cfg"}, {"sequence", "tensor"}, 600 << 10,
       std::size_t{2} * 16 * 3 * 4 * 6);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  for (const char* conditionings : {"shown", "text"}) {
    heddle::Engine::Data told(options_for({"cpu:0"}));
    check_inference(told, flow("", conditionings));
  }
}

BOOST_AUTO_TEST_CASE(other_latents_and_pictures_are_refused_with_what_to_do) {
  const auto refusal = [&](const std::string& text) {
    return engine_refusal([&] { draw(options_for({"cpu:0"}), text); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  std::string other = flow();
  const std::string one = R"("latent": ["coded", 0])";
  other.replace(other.find(one), one.size(), R"("latent": ["odd", 0])");
  other.insert(other.size() - 1,
               node("odd", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)"));
  says(refusal(other), {"4 latent channels", "16 channels", "autoencoder"});
  std::string many = flow();
  many.replace(many.find(one), one.size(), R"("latent": ["empty", 0])");
  says(refusal(many), {"3 axes", "16 channels"});
  add("controlnet/union", seeded_model("qwen_union", false, "control"));
  std::string controlled = flow(
      "", "shown",
      node("net", "ControlNetLoader", R"("control_net_name": "union.safetensors")") +
          node(
              "both.one", "ControlNetApplyAdvanced",
              R"("positive": ["shown.one", 0], "negative": ["shown.two", 0], "control_net": ["net", 0],
               "image": ["whole", 0], "vae": ["vae", 0], "strength": 1, "start_percent": 0,
               "end_percent": 1)"));
  // Of the sampler's.
  const std::size_t at = controlled.rfind(R"("positive": ["shown.one")");
  controlled.replace(at, std::string(R"("positive": ["shown.one")").size(),
                     R"("positive": ["both.one")");
  says(refusal(controlled), {"qwen-image", "takes no residuals"});
}

BOOST_AUTO_TEST_SUITE_END()
