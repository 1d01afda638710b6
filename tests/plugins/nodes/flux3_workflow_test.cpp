// FLUX 3 klein from the prompt to the picture, with ComfyUI's nodes and the file names of its
// templates, over models whose weights follow from their names, against PyTorch
// (../goldens/make_flux3_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/merged_lora.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

struct Flux3Workflow : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/flux3/expected.safetensors"};

  Flux3Workflow() {
    add(seeded_model("transformer", false, "flux3"), "diffusion_models/klein-base");
    add(seeded_model("turbo", false, "flux3"), "diffusion_models/klein");
    add(seeded_model("text", false, "krea2"), "text_encoders/qwen3vl_4b_int8_convrot");
    add(seeded_model("vae", false, "flux2"), "vae/flux2-vae");
  }
  void add(const std::vector<FileTensor>& tensors, const std::string& name) const {
    write_safetensors(folder / "models" / (name + ".safetensors"), tensors);
  }
  static std::string loaders(const std::string& unet, const std::string& type = "flux3") {
    return R"("model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + unet +
           R"(.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_4b_int8_convrot.safetensors", "type": ")" +
           type + R"(", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "flux2-vae.safetensors"}})";
  }
  // Links to what the loaders give, and to what is drawn by.
  struct Parts {
    std::string model = R"(["model", 0])", clip = R"(["clip", 0])", vae = R"(["vae", 0])",
                positive = R"(["one", 0])", more = "";
  };
  static std::string flow(const std::string& loaders, double cfg, const Parts& parts) {
    return "{" + loaders +
           R"(, "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a photo of a (red fox:1.1) in the snow, soft light", "clip": )" +
           parts.clip + R"(}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": )" +
           parts.clip + R"(}},
      "empty": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
      "drawn": {"class_type": "KSampler", "inputs": {"model": )" +
           parts.model + R"(, "seed": 7, "steps": 4, "cfg": )" + std::to_string(cfg) +
           R"(, "sampler_name": "euler", "scheduler": "simple", "positive": )" + parts.positive +
           R"(, "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0}},
      "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": )" +
           parts.vae + R"(}},
      "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
      "second": {"class_type": "test.first", "inputs": {"list": ["two", 0]}},
      "a": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "b": {"class_type": "test.look", "inputs": {"value": ["second", 0]}},
      "c": {"class_type": "test.look", "inputs": {"value": ["picture", 0]}})" +
           parts.more + "}";
  }
  static std::string guided() { return flow(loaders("klein-base"), 3.5, Parts()); }
  static Parts shown() {
    Parts parts;
    parts.positive = R"(["shown", 0])";
    parts.more =
        R"(, "colour": {"class_type": "EmptyImage", "inputs": {"width": 48, "height": 32, "batch_size": 1, "color": 4227264}},
      "seen": {"class_type": "VAEEncode", "inputs": {"pixels": ["colour", 0], "vae": ["vae", 0]}},
      "shown": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["one", 0], "latent": ["seen", 0]}})";
    return parts;
  }
  // The same by ReferenceMultiLatent, with another picture; resolution: inputs of that.
  static Parts shown_at_once(const std::string& resolution) {
    Parts parts = shown();
    parts.positive = R"(["at_once", 0])";
    parts.more +=
        R"(, "other": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 48, "batch_size": 1, "color": 255}},
      "at_once": {"class_type": "ReferenceMultiLatent", "inputs": {"positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0],
        "images.image0": ["colour", 0], "images.image1": ["other", 0], )" +
        resolution + "}}";
    return parts;
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
  void compare_drawing(const std::string& flow) {
    const heddle::Results results =
        run_whole(flow, {"first.value", "second.value", "drawn.LATENT", "picture.IMAGE"});
    BOOST_TEST(warnings.empty());
    using Shape = std::vector<std::int64_t>;
    // Completed to a multiple of 80 by padding, whose states the model sees.
    BOOST_TEST(results.shape("first.value", "cross_attn") == (Shape{1, 80, 192}));
    compare(results.floats("first.value", "cross_attn"), "flow.states");
    compare(results.floats("second.value", "cross_attn"), "flow.negative");
    compare(results.floats("drawn.LATENT", "samples"), "flow.latent");
    const double decibels = psnr(results.floats("picture.IMAGE"), "flow.picture");
    BOOST_TEST_MESSAGE(decibels << " dB");
    BOOST_TEST(decibels >= 70, decibels << " dB");
  }
  std::vector<float> drawn(const std::string& flow) {
    return run_whole(flow, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux3_workflows, Flux3Workflow)

BOOST_AUTO_TEST_CASE(klein_base_from_the_prompt_to_the_picture_equals_pytorch) {
  compare_drawing(guided());
}

BOOST_AUTO_TEST_CASE(a_picture_that_klein_base_is_shown_lies_where_pytorch_puts_it) {
  const std::vector<float> edited = drawn(flow(loaders("klein-base"), 1, shown()));
  BOOST_TEST(warnings.empty());
  compare(edited, "flow.edited");
  BOOST_TEST(relative_error(edited, drawn(flow(loaders("klein-base"), 1, Parts()))) >
             10 * kTolerance);
}

BOOST_AUTO_TEST_CASE(several_pictures_that_are_shown_at_once_are_those_that_are_shown_in_turn) {
  const auto shown_in_turn = [](const std::string& scaled) {
    Parts parts = shown();
    parts.positive = R"(["shown_2", 0])";
    parts.more +=
        R"(, "other": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 48, "batch_size": 1, "color": 255}},
      "seen_2": {"class_type": "VAEEncode", "inputs": {"pixels": [")" +
        scaled + R"(", 0], "vae": ["vae", 0]}},
      "shown_2": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["shown", 0], "latent": ["seen_2", 0]}})";
    return parts;
  };
  const std::vector<float> kept =
      drawn(flow(loaders("klein-base"), 1, shown_at_once(R"("resolution": "keep resolution")")));
  BOOST_TEST((kept == drawn(flow(loaders("klein-base"), 1, shown_in_turn("other")))));
  // With one picture only it is the one of PyTorch.
  Parts one = shown_at_once(R"("resolution": "keep resolution")");
  const std::string second = R"("images.image1": ["other", 0], )";
  one.more.erase(one.more.find(second), second.size());
  compare(drawn(flow(loaders("klein-base"), 1, one)), "flow.edited");
  // Scaled to a number of pixels, by areas.
  const std::string resized = R"("resolution": "resize", "resolution.megapixels": 0.01)";
  Parts scaled = shown_in_turn("scaled_2");
  scaled.more.replace(scaled.more.find(R"("pixels": ["colour", 0])"), 23,
                      R"("pixels": ["scaled", 0])");
  for (const char* of : {"", "_2"})
    scaled.more += heddle::engine::cat(
        R"(, "scaled)", of,
        R"(": {"class_type": "ImageScaleToTotalPixels", "inputs": {"upscale_method": "area", "megapixels": 0.01, "resolution_steps": 1, "image": [")",
        *of == '\0' ? "colour" : "other", R"(", 0]}})");
  const std::vector<float> small = drawn(flow(loaders("klein-base"), 1, shown_at_once(resized)));
  BOOST_TEST((small == drawn(flow(loaders("klein-base"), 1, scaled))));
  BOOST_TEST((small != kept));
}

BOOST_AUTO_TEST_CASE(pictures_that_are_shown_at_once_begin_a_latent) {
  const auto begun = [&](const std::string& resolution, const std::string& left_out) {
    Parts parts = shown_at_once(resolution);
    if (!left_out.empty()) parts.more.erase(parts.more.find(left_out), left_out.size());
    parts.more +=
        R"(, "first_of": {"class_type": "test.first", "inputs": {"list": ["at_once", 1]}},
      "d": {"class_type": "test.look", "inputs": {"value": ["first_of", 0]}},
      "e": {"class_type": "test.look", "inputs": {"value": ["at_once", 2]}})";
    return run_whole(flow(loaders("klein"), 1, parts), {"first_of.value", "at_once.empty_latent"});
  };
  using Shape = std::vector<std::int64_t>;
  const std::string kept = R"("resolution": "keep resolution")";
  const heddle::Results both = begun(kept, "");
  BOOST_TEST(both.shape("at_once.empty_latent", "samples") == (Shape{1, 128, 2, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(both.shape("first_of.value", "reference_latents.1.samples") == (Shape{1, 128, 3, 4}),
             boost::test_tools::per_element());
  const std::vector<float> zeros = both.floats("at_once.empty_latent", "samples");
  BOOST_TEST((zeros == std::vector<float>(zeros.size())));
  // Without a negative conditioning it is the positive one, which has other states.
  const auto states = [](const heddle::Results& results) {
    return results.floats("first_of.value", "cross_attn");
  };
  BOOST_TEST((states(both) != states(begun(kept, R"("negative": ["two", 0], )"))));
  BOOST_TEST((begun(kept, R"("vae": ["vae", 0],)").shape("at_once.empty_latent", "samples") ==
              Shape{1, 128, 64, 64}));
  BOOST_TEST(
      (begun(R"("resolution": "resize", "resolution.megapixels": 0.04)", R"("vae": ["vae", 0],)")
           .shape("at_once.empty_latent", "samples") == Shape{1, 128, 12, 12}));
}

BOOST_AUTO_TEST_CASE(klein_is_told_where_each_of_its_steps_goes) {
  compare(drawn(flow(loaders("klein"), 1, Parts())), "flow.turbo");
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_holds_all_its_parts) {
  std::vector<FileTensor> all;
  const auto put = [&](const std::string& prefix, const std::vector<FileTensor>& tensors) {
    for (FileTensor tensor : tensors) {
      tensor.name = prefix + tensor.name;
      all.push_back(std::move(tensor));
    }
  };
  put("model.diffusion_model.", seeded_model("transformer", false, "flux3"));
  put("text_encoders.qwen3vl_4b.transformer.", seeded_model("text", false, "krea2"));
  put("vae.", seeded_model("vae", false, "flux2"));
  std::filesystem::create_directories(folder / "models/checkpoints");
  add(all, "checkpoints/flux3");
  Parts parts;
  parts.model = R"(["all", 0])", parts.clip = R"(["all", 1])", parts.vae = R"(["all", 2])";
  compare_drawing(flow(
      R"("all": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "flux3.safetensors"}})",
      3.5, parts));
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  for (const std::string& drawing :
       {guided(), flow(loaders("klein"), 1, shown()),
        flow(loaders("klein"), 1,
             shown_at_once(R"("resolution": "resize", "resolution.megapixels": 0.01)"))}) {
    heddle::EngineOptions options = engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "told";
    heddle::Engine::Data told(options);  // with nothing kept of another run
    check_inference(told, drawing);
  }
}

BOOST_AUTO_TEST_CASE(a_lora_finds_its_modules_by_every_name) {
  const std::string a = ".lora_A.weight", b = ".lora_B.weight";
  constexpr std::int64_t d = 48;
  const std::vector<LoraTarget> modules = {
      {"diffusion_model.single_blocks.0.k_proj", b, a, "single_blocks.0.k_proj.weight", 0, d},
      {"transformer.mode_blocks.image.1.ff.linear_in", b, a,
       "content_mode_blocks.image.1.mlp_in.weight", 0, 6 * d},
      {"transformer.txt_mode_blocks.0.attn.to_out.0", b, a, "txt_mode_blocks.0.attn_out.weight", 0,
       d},
      {"base_model.model.early_stream_modulations.image.lin", b, a,
       "early_stream_modulations.image.lin.weight", 0, 3 * d},
      {"lora_unet_single_blocks_1_mlp_out", ".lora_up.weight", ".lora_down.weight",
       "single_blocks.1.mlp_out.weight", 0, d}};
  std::vector<FileTensor> merged = seeded_model("transformer", false, "flux3");
  add(merged_lora(merged, modules, 0.5f), "loras/style");
  add(merged, "diffusion_models/merged");
  Parts patched;
  patched.model = R"(["lora", 0])";
  patched.more =
      R"(, "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["model", 0], "lora_name": "style.safetensors", "strength_model": 0.5}})";
  const std::vector<float> with_lora = drawn(flow(loaders("klein-base"), 1, patched));
  BOOST_TEST(warnings.empty());
  const double error = relative_error(with_lora, drawn(flow(loaders("merged"), 1, Parts()))),
               moved = relative_error(with_lora, drawn(flow(loaders("klein-base"), 1, Parts())));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(moved > 100 * kTolerance, "the LoRA changed " << moved);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_what_it_is) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto refusal = [&](const std::string& loaders) {
    return engine_refusal([&] { engine.plan(engine.parse(flow(loaders, 1, Parts()))); });
  };
  // States of twelve layers, as Krea 2 reads them.
  says(refusal(loaders("klein", "krea2")),
       {"288 wide", "flux3", "reads 192", "CLIPLoader, type flux3"});
  std::vector<FileTensor> shallow = seeded_model("text", false, "krea2");
  std::erase_if(shallow, [](const FileTensor& tensor) {
    return tensor.name.starts_with("model.language_model.layers.3") &&
           !tensor.name.starts_with("model.language_model.layers.3.");
  });
  add(shallow, "text_encoders/qwen3vl_4b_int8_convrot");
  says(refusal(loaders("klein")), {"30 layers", "layer 32", "flux3"});
}

BOOST_AUTO_TEST_SUITE_END()
