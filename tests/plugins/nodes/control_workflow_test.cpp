// Workflows with ControlNets, from the prompt to the picture, over models whose weights follow from
// their names, against PyTorch (../goldens/make_control_goldens.py).
#include <atomic>
#include <cmath>
#include <thread>

#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/sd3_models.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

using heddle::engine::cat;

std::filesystem::path control_folder() { return tests_folder() / "plugins/goldens/control"; }

struct ControlWorkflows {
  TemporaryFolder folder;
  TensorFile expected{control_folder() / "expected.safetensors"};
  std::vector<std::string> warnings;

  void add(const std::string& name, const std::vector<FileTensor>& tensors) const {
    std::filesystem::create_directories((folder / "models" / name).parent_path());
    write_safetensors(folder / "models" / (name + ".safetensors"), tensors);
  }
  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.input_dir = control_folder();
    options.output_dir = folder / "out";
    return options;
  }
  void add_qwen() const {
    add("diffusion_models/qwen", seeded_model("qwen_image.transformer"));
    add("text_encoders/qwen", seeded_model("qwen_image.text"));
    add("vae/qwen", seeded_model("qwen_image.vae"));
    for (const char* name : {"qwen_union", "qwen_inpaint", "qwen_fun"})
      add(cat("controlnet/", name), seeded_model(name, false, "control"));
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  // A model, the autoencoder that FLUX and Stable Diffusion have, and ControlNets.
  void add_given(const std::vector<FileTensor>& model,
                 std::initializer_list<const char*> nets) const {
    add("diffusion_models/given", model);
    add("vae/given", seeded_model("z_image.vae"));
    for (const char* name : nets)
      add(cat("controlnet/", name), seeded_model(name, false, "control"));
  }
  static constexpr const char* kAllTheWay =
      R"("image": ["hint", 0], "vae": ["vae", 0], "start_percent": 0, "end_percent": 1)";
  // A CONDITIONING of the golden file.
  static std::string given_text(const std::string& name, const std::string& golden) {
    return node(name, "test.conditioning",
                cat(R"("path": ")", (control_folder() / "expected.safetensors").string(),
                    R"(", "prefix": "in.)", golden, R"(", "option": "")"));
  }
  // From these to the latent, by the node "applied".
  static std::string given_flow(const std::string& more, const std::string& latent,
                                const std::string& sampling) {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "given.safetensors", "weight_dtype": "default"}})",
        node("vae", "VAELoader", R"("vae_name": "given.safetensors")"),
        node("hint", "LoadImage", R"("image": "hint.png")"),
        node("empty", "EmptySD3LatentImage", latent), more,
        node("drawn", "KSampler",
             cat(R"("model": ["model", 0], "seed": 7, "steps": 3, "sampler_name": "euler",
                 "scheduler": "simple", "latent_image": ["empty", 0], "denoise": 1.0, "positive": ["applied", 0],
                 "negative": ["applied", 1], )",
                 sampling)),
        node("seen", "test.look", R"("value": ["drawn", 0])"), "}");
  }
  static std::string loader(const std::string& name, const std::string& as = "net") {
    return node(as, "ControlNetLoader", cat(R"("control_net_name": ")", name, R"(.safetensors")"));
  }
  // What is applied to the texts; `more` are inputs.
  static std::string applied(const std::string& name, const std::string& from,
                             const std::string& more,
                             const std::string& type = "ControlNetApplyAdvanced") {
    const bool is_text = from == "text";
    return node(name, type,
                cat(R"("positive": [")", is_text ? "one" : from, R"(", 0], "negative": [")",
                    is_text ? "two" : from, R"(", )", is_text ? 0 : 1,
                    R"(], "control_net": ["net", 0], "vae": ["vae", 0], )", more));
  }
  // From the loaders to the picture, with conditionings of the node `from`, "applied" for both, or
  // else the positive one.
  static std::string qwen_flow(const std::string& more, const std::string& from = "applied",
                               const std::string& sampling = "") {
    const std::string empty = R"("width": 80, "height": 48, "batch_size": 1)";
    return cat(
        R"({"unet": {"class_type": "UNETLoader", "inputs": {"unet_name": "qwen.safetensors", "weight_dtype": "default"}})",
        node("clip", "CLIPLoader",
             R"("clip_name": "qwen.safetensors", "type": "qwen_image", "device": "default")"),
        node("vae", "VAELoader", R"("vae_name": "qwen.safetensors")"),
        node(
            "one", "CLIPTextEncode",
            R"("clip": ["clip", 0], "text": "a photo of a (red fox:1.1) in the snow, soft light")"),
        node("two", "CLIPTextEncode", R"("clip": ["clip", 0], "text": " ")"),
        node("hint", "LoadImage", R"("image": "hint.png")"),
        node("turned", "ImageFlip",
             R"("image": ["hint", 0], "flip_method": "y-axis: horizontally")"),
        node("model", "ModelSamplingAuraFlow", R"("model": ["unet", 0], "shift": 3.1)"),
        node("empty", "EmptySD3LatentImage", empty), more,
        node(
            "drawn", "KSampler",
            cat(R"("model": ["model", 0], "seed": 7, "steps": 3, "cfg": 2.5, "sampler_name": "euler",
                 "scheduler": "simple", "latent_image": ["empty", 0], "denoise": 1.0, "positive": [")",
                from, R"(", 0], "negative": [)",
                from == "applied" ? R"("applied", 1)" : R"("two", 0)", "]", sampling)),
        node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["vae", 0])"),
        node("seen", "test.look", R"("value": ["picture", 0])"), "}");
  }
  static std::string two_hints() {
    return cat(
        loader("qwen_union"),
        applied("first", "text",
                R"("image": ["hint", 0], "strength": 0.7, "start_percent": 0, "end_percent": 1)"),
        applied(
            "applied", "first",
            R"("image": ["turned", 0], "strength": 0.4, "start_percent": 0, "end_percent": 0.5)"));
  }
  heddle::Results run(const std::string& flow, std::vector<std::string> keep,
                      const heddle::EngineOptions& options) {
    warnings.clear();
    const auto observe = [this](const heddle::Event& event) {
      if (event.kind == heddle::Event::Kind::warning) warnings.emplace_back(event.text);
    };
    engine.emplace(options);
    return engine->start(engine->parse(flow), {observe, std::move(keep)}).wait();
  }
  std::vector<float> drawn(const std::string& flow) {
    return run(flow, {"drawn.LATENT"}, options()).floats("drawn.LATENT", "samples");
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < NodeFixture::kTolerance, golden << ": relative error " << error);
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

  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }

  std::optional<heddle::Engine> engine;  // results lie in its memory
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(control_workflows, ControlWorkflows)

BOOST_AUTO_TEST_CASE(two_hints_one_of_them_half_the_way_draw_what_pytorch_draws) {
  add_qwen();
  const heddle::Results results =
      run(qwen_flow(two_hints()), {"drawn.LATENT", "picture.IMAGE"}, options());
  BOOST_TEST(warnings.empty());
  compare(results.floats("drawn.LATENT", "samples"), "qwen.latent");
  const double decibels = psnr(results.floats("picture.IMAGE"), "qwen.picture");
  BOOST_TEST(decibels >= 70, decibels << " dB");
}

// Also where another ControlNet ends.
BOOST_AUTO_TEST_CASE(a_run_that_is_stopped_at_each_step_goes_on) {
  add_qwen();
  heddle::EngineOptions without_cache = options();
  without_cache.cache_bytes = 1;
  engine.emplace(without_cache);
  std::atomic<heddle::Run*> under_way{nullptr};
  int begun = 0;
  const auto observe = [&](const heddle::Event& event) {
    if (event.node != "drawn") return;
    begun += event.kind == heddle::Event::Kind::node_started ? 1 : 0;
    if (event.kind != heddle::Event::Kind::node_progress) return;
    while (under_way == nullptr) std::this_thread::yield();
    under_way.load()->pause_and_release();
    under_way.load()->resume();
  };
  heddle::Run run =
      engine->start(engine->parse(qwen_flow(two_hints())), {observe, {"drawn.LATENT"}});
  under_way = &run;
  compare(run.wait().floats("drawn.LATENT", "samples"), "qwen.latent");
  BOOST_TEST(begun > 2);
}

BOOST_AUTO_TEST_CASE(a_control_net_for_inpainting_reads_picture_and_mask) {
  add_qwen();
  compare(drawn(qwen_flow(loader("qwen_inpaint") +
                          applied("applied", "text",
                                  R"("image": ["hint", 0], "mask": ["hint", 1], "strength": 0.9,
                         "start_percent": 0, "end_percent": 1)",
                                  "ControlNetInpaintingAliMamaApply"))),
          "qwen.inpainted");
}

// It begins with layers of the denoiser. Its strength counts by its square root.
BOOST_AUTO_TEST_CASE(a_fun_control_net_draws_what_pytorch_draws) {
  add_qwen();
  const std::string flow = qwen_flow(
      loader("qwen_fun") +
      applied("applied", "text",
              R"("image": ["hint", 0], "strength": 0.36, "start_percent": 0, "end_percent": 1)"));
  compare(drawn(flow), "qwen.fun");
  {
    heddle::Engine::Data data{options()};
    check_inference(data, flow);
  }
  add("diffusion_models/qwen", seeded_model("flux", false, "control"));
  engine.emplace(options());
  says(engine_refusal([&] { engine->plan(engine->parse(flow)); }),
       {"ControlNet (qwen-image-fun-control)", "family 'qwen-image'", "'flux'"});
}

BOOST_AUTO_TEST_CASE(flux_with_two_control_nets_of_other_depths_draws_what_pytorch_draws) {
  add_given(seeded_model("flux", false, "control"), {"flux_union", "flux_plain"});
  const std::string flow = given_flow(
      given_text("one", "flux") +
          node("guided", "FluxGuidance", R"("conditioning": ["one", 0], "guidance": 2.5)") +
          loader("flux_plain", "second_net") + loader("flux_union", "union_net") +
          node("net", "SetUnionControlNetType",
               R"("control_net": ["union_net", 0], "type": "canny/lineart/anime_lineart/mlsd")") +
          node(
              "first", "ControlNetApplySD3",
              cat(R"("positive": ["guided", 0], "negative": ["guided", 0], "control_net": ["net", 0], )",
                  R"("strength": 0.05, )", kAllTheWay)) +
          node(
              "applied", "ControlNetApplyAdvanced",
              cat(R"("positive": ["first", 0], "negative": ["first", 1], "control_net": ["second_net", 0], )",
                  R"("strength": 0.03, )", kAllTheWay)),
      R"("width": 72, "height": 56, "batch_size": 2)", R"("cfg": 1.0)");
  compare(drawn(flow), "flux.latent");
}

// The old node gives no autoencoder, and its ControlNet is beside the negative prompt, too.
BOOST_AUTO_TEST_CASE(a_control_net_of_pixels_by_the_old_node_draws_what_pytorch_draws) {
  add_given(seeded_model("flux", false, "control"), {"flux_pixels"});
  std::string flow = given_flow(
      given_text("one", "flux") + given_text("two", "flux_other") + loader("flux_pixels") +
          node(
              "applied", "ControlNetApply",
              R"("conditioning": ["one", 0], "control_net": ["net", 0], "image": ["hint", 0], "strength": 1.0)"),
      R"("width": 64, "height": 48, "batch_size": 1)", R"("cfg": 2.0)");
  const std::string negative = R"("negative": ["applied", 1])";
  flow.replace(flow.find(negative), negative.size(), R"("negative": ["two", 0])");
  compare(drawn(flow), "flux.pixels");
}

BOOST_AUTO_TEST_CASE(stable_diffusion_3_draws_what_pytorch_draws) {
  add_given(sd3_transformer("first"), {"sd3_first"});
  const auto flow = [](const std::string& net) {
    return given_flow(
        given_text("one", "sd3_one") + given_text("two", "sd3_two") + loader(net) +
            node(
                "applied", "ControlNetApplyAdvanced",
                cat(R"("positive": ["one", 0], "negative": ["two", 0], "control_net": ["net", 0], )",
                    R"("strength": 0.02, )", kAllTheWay)),
        R"("width": 64, "height": 48, "batch_size": 1)", R"("cfg": 2.5)");
  };
  compare(drawn(flow("sd3_first")), "sd3.latent");
  // Edges for 3.5 large: it begins with what the denoiser makes of the latent.
  add_given(sd3_transformer("large"), {});
  std::vector<FileTensor> edges = seeded_model("sd3_large", false, "control");
  edges.push_back({"control_type", "F32", {1}, bytes_of_floats({1})});
  add("controlnet/edges", edges);
  compare(drawn(flow("edges")), "sd3.canny");
  // FLUX's is not for this model.
  add("controlnet/flux", seeded_model("flux_plain", false, "control"));
  says(engine_refusal([&] { drawn(flow("flux")); }),
       {"ControlNet (flux-control)", "family 'flux'", "'sd3'"});
}

BOOST_AUTO_TEST_CASE(what_a_run_calls_is_told_before_it) {
  add_qwen();
  heddle::Engine::Data data{options()};
  check_inference(data, qwen_flow(two_hints()));
}

// A hint is resized to the part of the picture that its conditioning sees.
BOOST_AUTO_TEST_CASE(a_hint_in_an_area_is_told_and_seen_in_its_size) {
  add_qwen();
  const auto in_area = [](const char* width) {
    return qwen_flow(
        cat(loader("qwen_union"),
            applied(
                "applied", "text",
                R"("image": ["hint", 0], "strength": 0.7, "start_percent": 0, "end_percent": 1)"),
            node("area", "ConditioningSetAreaPercentage",
                 cat(R"("conditioning": ["applied", 0], "width": )", width,
                     R"(, "height": 1, "x": 0, "y": 0, "strength": 1.0)")),
            node("both", "ConditioningCombine",
                 R"("conditioning_1": ["area", 0], "conditioning_2": ["one", 0])")),
        "both");
  };
  {
    heddle::Engine::Data data{options()};
    check_inference(data, in_area("0.5"));
  }
  const std::vector<float> half = drawn(in_area("0.5")), whole = drawn(in_area("1"));
  BOOST_TEST(relative_error(half, whole) > 0.01);
}

BOOST_AUTO_TEST_CASE(strength_zero_and_a_range_that_no_step_is_in_change_nothing) {
  add_qwen();
  const std::vector<float> plain = drawn(qwen_flow("", "one"));
  const auto with = [&](const char* numbers) {
    return drawn(qwen_flow(loader("qwen_union") +
                           applied("applied", "text", cat(R"("image": ["hint", 0], )", numbers))));
  };
  BOOST_TEST(
      relative_error(with(R"("strength": 0, "start_percent": 0, "end_percent": 1)"), plain) == 0.0);
  BOOST_TEST(relative_error(with(R"("strength": 1, "start_percent": 0.9, "end_percent": 1)"),
                            plain) == 0.0);
  BOOST_TEST(relative_error(with(R"("strength": 1, "start_percent": 0, "end_percent": 0.1)"),
                            plain) > 0.01);
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused_before_it_runs_with_what_to_do) {
  add_qwen();
  const auto refusal = [&](const std::string& flow) {
    engine.emplace(options());
    return engine_refusal([&] { engine->plan(engine->parse(flow)); });
  };
  const std::string all =
      R"("image": ["hint", 0], "strength": 1, "start_percent": 0, "end_percent": 1)";
  says(refusal(qwen_flow(loader("qwen_inpaint") + applied("applied", "text", all))),
       {"for inpainting", "ControlNetInpaintingAliMamaApply"});
  // The old node has no autoencoder to give.
  says(
      refusal(qwen_flow(
          loader("qwen_union") +
              node(
                  "old", "ControlNetApply",
                  R"("conditioning": ["one", 0], "control_net": ["net", 0], "image": ["hint", 0], "strength": 1)"),
          "old")),
      {"no autoencoder", "ControlNetApplyAdvanced"});
  std::string flow = qwen_flow(
      loader("qwen_union") + applied("applied", "text", all) +
      node("guided", "NAGuidance",
           R"("model": ["model", 0], "nag_scale": 5.0, "nag_alpha": 0.5, "nag_tau": 1.5)"));
  const std::string from = R"("inputs": {"model": ["model", 0], "seed")";
  BOOST_TEST_REQUIRE(flow.find(from) != std::string::npos);
  flow.replace(flow.find(from), from.size(), R"("inputs": {"model": ["guided", 0], "seed")");
  says(engine_refusal([&] { drawn(flow); }), {"ControlNet", "NAGuidance", "Leave out one"});
  std::vector<FileTensor> wide = seeded_model("qwen_inpaint", false, "control");
  for (FileTensor& tensor : wide)
    if (tensor.name == "controlnet_x_embedder.weight")
      tensor = seeded_tensor(tensor.name, {tensor.shape[0], 320});
  add("controlnet/wide", wide);
  says(refusal(qwen_flow(loader("wide") + applied("applied", "text", all))),
       {"hints of 80 channels", "with a mask 17"});
  add("controlnet/other", seeded_model("qwen_image.transformer"));
  says(refusal(qwen_flow(loader("other") + applied("applied", "text", all))),
       {"other.safetensors", "a diffusion model (qwen-image), not a ControlNet", "UNETLoader"});
  add("diffusion_models/qwen", seeded_model("qwen_union", false, "control"));
  says(refusal(qwen_flow("", "one")), {"qwen.safetensors", "a ControlNet (qwen-image-control)",
                                       "not a diffusion model", "ControlNetLoader"});
}

BOOST_AUTO_TEST_SUITE_END()
