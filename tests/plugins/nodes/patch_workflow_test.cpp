// Workflows with model patches over models whose weights follow from their names, against PyTorch
// (../goldens/make_patch_goldens.py).
#include <atomic>
#include <thread>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/patched_models.h"

using namespace heddle::test;

namespace {

using heddle::engine::cat;

struct PatchWorkflows {
  TemporaryFolder folder;
  TensorFile expected{patches_golden()};
  std::optional<heddle::Engine> engine;  // results lie in its memory

  PatchWorkflows() { write_patched_models(folder / "models"); }

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs = {folder / "models"};
    options.input_dir = tests_folder() / "plugins/goldens/control";
    options.output_dir = folder / "out";
    return options;
  }
  std::vector<float> drawn(const PatchedFlow& flow) {
    engine.emplace(options());
    return engine->start(engine->parse(flow.text()), {{}, {"drawn.LATENT"}})
        .wait()
        .floats("drawn.LATENT", "samples");
  }
  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < NodeFixture::kTolerance, golden << ": relative error " << error);
  }
  static PatchedFlow of_picture() {
    return {.nodes = patched_by("applied", "alone", "model",
                                R"("strength": 0.7, "image": ["hint", 0])")};
  }
  static PatchedFlow half_the_way() {
    return {.nodes = patched_by("applied", "beside", "model",
                                R"("strength": 0.9, "image": ["hint", 0], "inpaint_image":
                                ["turned", 0], "mask": ["hint", 1], "end_percent": 0.5)")};
  }
  static PatchedFlow of_qwen(const std::string& patch, const std::string& more) {
    return {.model = "qwen",
            .nodes = patched_by("applied", patch, "model",
                                cat(R"("image": ["hint", 0], "strength": )", more)),
            .cfg = "2.5",
            .positive = "in.qwen_one",
            .negative = "in.qwen_two"};
  }
  // Two models with one patch each, out of one file, the negative one with a picture of its own.
  static PatchedFlow of_two_models(const std::string& negative_picture) {
    const auto applied = [](const std::string& name, const std::string& picture) {
      return node_of(name, "ZImageFunControlnet",
                     cat(R"("model": ["model", 0], "model_patch": ["file", 0], "vae": ["vae", 0],
                         "strength": 0.7, "image": [")",
                         picture, R"(", 0])"));
    };
    return {
        .nodes = cat(
            node_of("file", "ModelPatchLoader", R"("name": "alone.safetensors")"),
            applied("applied", "hint"), applied("other", negative_picture),
            node_of("guider", "DualModelGuider",
                    R"("model": ["applied", 0], "model_negative": ["other", 0], "cfg": 3.0,
                            "positive": ["one", 0], "negative": ["two", 0])"),
            node_of("noise", "RandomNoise", R"("noise_seed": 7)"),
            node_of("method", "KSamplerSelect", R"("sampler_name": "euler")"),
            node_of(
                "levels", "BasicScheduler",
                R"("model": ["applied", 0], "scheduler": "simple", "steps": 2, "denoise": 1.0)"),
            node_of("guided", "SamplerCustomAdvanced",
                    R"("noise": ["noise", 0], "guider": ["guider", 0], "sampler": ["method", 0],
                            "sigmas": ["levels", 0], "latent_image": ["empty", 0])"),
            node_of("guided_seen", "test.look", R"("value": ["guided", 0])"))};
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(patch_workflows, PatchWorkflows)

BOOST_AUTO_TEST_CASE(a_picture_beside_z_image_draws_what_pytorch_draws) {
  compare(drawn(of_picture()), "fun.latent");
}

BOOST_AUTO_TEST_CASE(a_patch_half_the_way_with_a_part_drawn_anew_draws_what_pytorch_draws) {
  compare(drawn(half_the_way()), "fun.half");
}

BOOST_AUTO_TEST_CASE(a_part_is_drawn_anew_by_a_patch_without_refiners) {
  compare(drawn({.nodes = patched_by("applied", "repeated", "model",
                                     R"("strength": 0.6, "image": ["turned", 0], "inpaint_image":
                                     ["hint", 0], "mask": ["hint", 1], "start_percent": 0,
                                     "end_percent": 1)")}),
          "fun.inpainted");
}

BOOST_AUTO_TEST_CASE(each_of_two_models_sees_the_picture_of_its_own_patch) {
  const auto guided = [&](const char* negative_picture) {
    engine.emplace(options());
    return engine
        ->start(engine->parse(of_two_models(negative_picture).text()), {{}, {"guided.output"}})
        .wait()
        .floats("guided.output", "samples");
  };
  BOOST_TEST(relative_error(guided("turned"), guided("hint")) > 1e-3);
}

// What is not given is grey.
BOOST_AUTO_TEST_CASE(a_picture_that_is_not_given_is_grey, *boost::unit_test::label("long")) {
  const std::string grey =
      cat(node_of("half", "SolidMask", R"("value": 0.5, "width": 80, "height": 48)"),
          node_of("grey", "MaskToImage", R"("mask": ["half", 0])"));
  const auto with = [&](const char* pictures) {
    return drawn({.nodes = cat(grey, patched_by("applied", "beside", "model",
                                                cat(R"("strength": 0.6, "mask": ["hint", 1], )",
                                                    pictures)))});
  };
  const std::vector<float> both = with(R"("image": ["grey", 0], "inpaint_image": ["hint", 0])");
  BOOST_TEST(relative_error(with(R"("inpaint_image": ["hint", 0])"), both) == 0.0);
  const std::vector<float> alone = with(R"("image": ["hint", 0], "inpaint_image": ["grey", 0])");
  BOOST_TEST(relative_error(with(R"("image": ["hint", 0])"), alone) == 0.0);
  BOOST_TEST(relative_error(both, alone) > 0.01);
}

BOOST_AUTO_TEST_CASE(what_a_run_with_patches_calls_is_told_before_it) {
  for (PatchedFlow flow : {of_picture(), half_the_way(), of_qwen("qwen_edges", "0.7")}) {
    flow.is_encoded = true;
    heddle::Engine::Data data{options()};
    check_inference(data, flow.text());
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_is_stopped_at_each_step_goes_on_with_its_patch) {
  heddle::EngineOptions without_cache = options();
  without_cache.cache_bytes = 1;
  engine.emplace(without_cache);
  std::atomic<heddle::Run*> under_way{nullptr};
  const auto observe = [&](const heddle::Event& event) {
    if (event.node != "drawn" || event.kind != heddle::Event::Kind::node_progress) return;
    while (under_way == nullptr) std::this_thread::yield();
    under_way.load()->pause_and_release();
    under_way.load()->resume();
  };
  heddle::Run run =
      engine->start(engine->parse(half_the_way().text()), {observe, {"drawn.LATENT"}});
  under_way = &run;
  compare(run.wait().floats("drawn.LATENT", "samples"), "fun.half");
}

// At rest it is the model without the patch, to the byte; so is one of strength 0.
BOOST_AUTO_TEST_CASE(a_patch_at_rest_changes_nothing) {
  const auto with = [&](const char* more) {
    return drawn(
        {.nodes = patched_by("applied", "alone", "model", cat(R"("image": ["hint", 0], )", more))});
  };
  const std::vector<float> plain =
      drawn({.nodes = node_of("applied", "ModelSamplingAuraFlow",
                              R"("model": ["model", 0], "shift": 3.0)")});
  BOOST_TEST(relative_error(with(R"("strength": 0)"), plain) == 0.0);
  BOOST_TEST(relative_error(with(R"("strength": 1, "start_percent": 0.9)"), plain) == 0.0);
  BOOST_TEST(relative_error(with(R"("strength": 1, "end_percent": 0.1)"), plain) > 0.01);
}

BOOST_AUTO_TEST_CASE(a_lora_changes_the_model_and_not_the_patch_in_either_order) {
  const std::string name = "diffusion_model.layers.1.attention.qkv";
  std::filesystem::create_directories(folder / "models/loras");
  write_safetensors(folder / "models/loras/lora.safetensors",
                    {seeded_tensor(name + ".lora_A.weight", {4, 48}),
                     seeded_tensor(name + ".lora_B.weight", {144, 4})});
  const auto lora = [](const char* as, const char* from) {
    return node_of(as, "LoraLoaderModelOnly",
                   cat(R"("model": [")", from,
                       R"(", 0], "lora_name": "lora.safetensors", "strength_model": 0.8)"));
  };
  const char* const more = R"("strength": 0.7, "image": ["hint", 0])";
  const std::vector<float> before =
      drawn({.nodes = cat(lora("with", "model"), patched_by("applied", "alone", "with", more))});
  const std::vector<float> behind =
      drawn({.nodes = cat(patched_by("with", "alone", "model", more), lora("applied", "with"))});
  BOOST_TEST(relative_error(before, behind) == 0.0);
  BOOST_TEST(relative_error(before, expected.floats("fun.latent")) > 1e-3);
}

// Of two patches with ranges of their own, each is at work in its part.
BOOST_AUTO_TEST_CASE(patches_rest_one_by_one) {
  const auto two = [&](const char* first, const char* second) {
    return drawn(
        {.nodes = cat(patched_by("first", "alone", "model",
                                 cat(R"("strength": 0.7, "image": ["hint", 0])", first)),
                      patched_by("applied", "alone", "first",
                                 cat(R"("strength": 0.7, "image": ["hint", 0])", second)))});
  };
  const char* const begin = R"(, "end_percent": 0.5)";
  const char* const end = R"(, "start_percent": 0.51)";
  const std::vector<float> all = expected.floats("fun.latent");
  compare(two(begin, end), "fun.latent");
  compare(two(end, begin), "fun.latent");
  BOOST_TEST(relative_error(two(begin, begin), all) > 0.01);
}

BOOST_AUTO_TEST_CASE(who_saves_a_patched_model_is_told_that_patches_are_left_out) {
  PatchedFlow flow = of_picture();
  flow.nodes +=
      node_of("save", "ModelSave", R"("model": ["applied", 0], "filename_prefix": "patched")");
  engine.emplace(options());
  std::string told;
  const auto observe = [&](const heddle::Event& event) {
    if (event.kind == heddle::Event::Kind::warning) told += event.text;
  };
  engine->start(engine->parse(flow.text()), {observe, {}}).wait();
  says(told, {"model patches", "no part of what is saved"});
}

BOOST_AUTO_TEST_CASE(diffsynth_beside_qwen_image_draws_what_pytorch_draws) {
  compare(drawn(of_qwen("qwen_edges", "0.7")), "qwen.edges");
  compare(drawn(of_qwen("qwen_inpaint", R"(0.9, "mask": ["hint", 1])")), "qwen.inpainted");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_before_it_runs_with_what_to_do) {
  const auto refusal = [&](const PatchedFlow& flow) {
    engine.emplace(options());
    return engine_refusal([&] { engine->plan(engine->parse(flow.text())); });
  };
  const auto with = [&](const char* patch, const char* more) {
    return PatchedFlow{.nodes = patched_by("applied", patch, "model", more)};
  };
  PatchedFlow other = of_qwen("qwen_edges", "1.0");
  other.model = "z";
  says(refusal(other), {"qwen-image-diffsynth", "family 'qwen-image'", "'z-image'"});
  // A model is no patch.
  write_safetensors(folder / "models/model_patches/model.safetensors",
                    seeded_model("z_image", false, "patches"));
  says(refusal(with("model", R"("strength": 1, "image": ["hint", 0])")),
       {"a diffusion model (z-image), not a model patch", "UNETLoader"});
  // What only a run can tell: that nothing is linked.
  says(engine_refusal([&] { drawn(with("alone", R"("strength": 1)")); }),
       {"shown nothing", "Link an IMAGE to image."});
  PatchedFlow guided = of_picture();
  guided.nodes = cat(patched_by("with", "alone", "model", R"("strength": 1, "image": ["hint", 0])"),
                     node_of("applied", "ContextWindowsManual",
                             R"("model": ["with", 0], "context_length": 4, "context_overlap": 1,
                             "context_schedule": "standard_static", "context_stride": 1,
                             "closed_loop": false, "fuse_method": "pyramid", "dim": 3)"));
  says(engine_refusal([&] { drawn(guided); }),
       {"a model patch", "context windows", "Leave out one"});
}

BOOST_AUTO_TEST_SUITE_END()
