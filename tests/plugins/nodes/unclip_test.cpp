// Pictures that a model draws by: Stable Diffusion 2.1 unCLIP, and SDXL with embeddings in place of
// the pooled text ("revision"), with CLIP's vision tower, against PyTorch
// (../goldens/make_unclip_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct PictureWorkflow : UnetWorkflow {
  const std::filesystem::path told = tests_folder() / "plugins/goldens/unclip/expected.safetensors";

  heddle::Engine pictured{same_models()};  // finds the pictures

  PictureWorkflow() { expected = TensorFile(told); }

  heddle::Results run_whole(const std::string& flow, std::vector<std::string> keep) {
    return pictured.start(pictured.parse(flow), {{}, std::move(keep)}).wait();
  }

  static std::vector<FileTensor> tower() { return seeded_model("tower", false, "unclip"); }
  // By the names of diffusers.
  static std::vector<FileTensor> unet() {
    std::vector<FileTensor> tensors = unet_model("sd2");
    constexpr std::int64_t kVector = 256, kLabel = 128;
    for (const auto& [part, width] : {std::pair("linear_1.", kLabel), {"linear_2.", kVector}}) {
      const std::string module = std::string("class_embedding.") + part;
      tensors.push_back(seeded_tensor(module + "weight", {kVector, width}));
      tensors.push_back(seeded_tensor(module + "bias", {kVector}));
    }
    return tensors;
  }
  void write_unclip() {
    std::vector<FileTensor> tensors = unet();
    name_unet_as_original(tensors, 1, "model.diffusion_model.");
    add("", std::move(tensors));
    add("first_stage_model.", unet_model("vae"));
    add("", as_open_clip(unet_model("clip_h"), "cond_stage_model.model."));
    add("", as_open_clip(tower(), "embedder.model.visual."));
    write_file("checkpoints/drawn", checkpoint);
  }
  static std::string picture(const std::string& name) {
    return node("load_" + name, "LoadImage", cat(R"("image": ")", name, R"(.png")"));
  }
  // Two pictures that `tower` sees, told to the text "text".
  static std::string shown(const std::string& tower, const std::string& first,
                           const std::string& second) {
    std::string nodes, from = "text";
    for (const auto& [name, numbers] : {std::pair("one", first), {"two", second}}) {
      const std::string seen = std::string("seen_") + name,
                        out = name == std::string("two") ? "positive" : "told_one";
      nodes += picture(name) +
               node(seen, "CLIPVisionEncode",
                    cat(R"("clip_vision": )", tower, R"(, "image": ["load_)", name,
                        R"(", 0], "crop": "center")")) +
               node(out, "unCLIPConditioning",
                    cat(R"("conditioning": [")", from, R"(", 0], "clip_vision_output": [")", seen,
                        R"(", 0], )", numbers));
      from = out;
    }
    return nodes;
  }
  static std::string strength(const char* strength, const char* noise) {
    return cat(R"("strength": )", strength, R"(, "noise_augmentation": )", noise);
  }
  static std::string rest(const std::string& sampler, const char* model = "model") {
    return text("text", "a photo of a cat", R"(["model", 1])") +
           text("two", "", R"(["model", 1])") +
           node("empty", "EmptyLatentImage", R"("width": 80, "height": 48, "batch_size": 1)") +
           "\"drawn\": " +
           ksampler(sampler +
                    cat(R"(, "positive": ["positive", 0], "model": [")", model, R"(", 0])")) +
           ", " + node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["model", 2])") +
           node("look", "test.look", R"("value": ["drawn", 0])") +
           R"("look_b": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})";
  }
  static std::string unclip(const char* model = "model") {
    return node("model", "unCLIPCheckpointLoader", R"("ckpt_name": "drawn.safetensors")") +
           shown(R"(["model", 3])", strength("0.8", "0.3"), strength("1.0", "0.1")) +
           rest(sampler("5.0", "euler", "normal", 4), model);
  }
  static std::string revision(const std::string& tower = "clip_vision_g") {
    return loader() +
           node("tower", "CLIPVisionLoader", cat(R"("clip_name": ")", tower, R"(.safetensors")")) +
           shown(R"(["tower", 0])", strength("0.75", "0.0"), strength("0.75", "0.0")) +
           rest(sampler("6.0", "dpmpp_2m", "karras", 3));
  }
  void draw(const std::string& nodes, const std::string& name) {
    const heddle::Results results = run_whole("{" + nodes + "}", {"drawn.LATENT", "picture.IMAGE"});
    same(results.floats("drawn.LATENT", "samples"), name + ".latent");
    same(few(results.floats("picture.IMAGE", "")), name + ".picture");
  }
  heddle::EngineOptions same_models() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.input_dir = tests_folder() / "plugins/goldens/edit";
    options.output_dir = folder / "out";
    return options;
  }
  std::string refusal(const std::string& nodes) {
    return engine_refusal([&] { run_whole("{" + nodes + "}", {"drawn.LATENT"}); });
  }
};

void tells(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unclip, PictureWorkflow)

BOOST_AUTO_TEST_CASE(the_tower_sees_what_that_of_transformers_sees) {
  write_file("clip_vision/whole", tower());
  write_file("clip_vision/open", as_open_clip(tower(), "visual."));
  ModelProbe probe;
  for (const char* file : {"whole", "open"}) {
    const heddle::Results results =
        probe.call({folder / "models/clip_vision" / (std::string(file) + ".safetensors"),
                    "vision_encoder", "", told, "tower."});
    for (const char* output : {"last_hidden", "penultimate", "projected"})
      same(results.floats("model.outputs", std::string(output) + ".0"),
           std::string("tower.") + output);
  }
}

BOOST_AUTO_TEST_CASE(unclip_from_a_checkpoint_equals_pytorch) {
  write_unclip();
  draw(unclip(), "unclip_drawn");
  heddle::Engine::Data other(same_models());
  check_inference(other, "{" + unclip() + "}");
}

// Its weights are 17 MB, and the text encoder needs nearly 15.
BOOST_AUTO_TEST_CASE(unclip_has_the_same_bytes_wherever_it_is_drawn,
                     *boost::unit_test::label("long")) {
  write_unclip();
  same_where_placed(same_models(), "{" + unclip() + "}", "KSampler", 15 << 20,
                    {{"drawn.LATENT", "samples"}, {"picture.IMAGE", ""}});
}

// The same UNet by the names of diffusers draws the same.
BOOST_AUTO_TEST_CASE(unclip_from_a_unet_of_diffusers_draws_the_same,
                     *boost::unit_test::label("long")) {
  write_unclip();
  write_file("diffusion_models/alone", unet());
  const auto latent = [&](const std::string& nodes) {
    return run_whole("{" + nodes + "}", {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  };
  const std::string alone =
      node("alone", "UNETLoader", R"("unet_name": "alone.safetensors", "weight_dtype": "default")");
  BOOST_TEST((latent(alone + unclip("alone")) == latent(unclip())));
}

BOOST_AUTO_TEST_CASE(sdxl_draws_by_pictures_in_place_of_the_pooled_text) {
  write("sdxl");
  write_file("clip_vision/clip_vision_g", tower());
  draw(revision(), "revision_drawn");
  heddle::Engine::Data other(same_models());
  check_inference(other, "{" + revision() + "}");
}

BOOST_AUTO_TEST_CASE(what_does_not_read_pictures_is_refused_by_name) {
  write("sd1");
  write_file("clip_vision/clip_vision_g", tower());
  tells(refusal(revision()), {"'unclip_conditioning'", "'unet'", "unCLIPConditioning"});
  tells(refusal(unclip()), {"drawn.safetensors", "no unCLIP checkpoint", "CheckpointLoaderSimple"});
}

BOOST_AUTO_TEST_CASE(a_tower_of_another_width_is_refused_by_both_widths) {
  write("sdxl");
  std::vector<FileTensor> narrow = tower();
  for (FileTensor& tensor : narrow)
    if (tensor.name == "visual_projection.weight") tensor = seeded_tensor(tensor.name, {32, 64});
  write_file("clip_vision/clip_vision_g", narrow);
  tells(refusal(revision()), {"32 numbers", "reads 64", "clip_vision_g"});
  std::erase_if(narrow, [](const FileTensor& t) { return t.name == "visual_projection.weight"; });
  write_file("clip_vision/clip_vision_g", narrow);
  tells(refusal(revision()), {"clip_vision_output", "no projected output"});
}

BOOST_AUTO_TEST_SUITE_END()
