// Samplers that are stopped at every boundary between two of their steps, and go on in another
// call, give the bytes of a run without a stop: all of them, and everything that a run keeps from
// one evaluation to the next.
#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using heddle::Event;
using heddle::Results;
using heddle::Run;
using heddle::test::NodeFixture;

namespace {

// Of the samplers that a case goes through; a run takes many times as long under a sanitizer.
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
constexpr std::size_t kEvery = 4;
#else
constexpr std::size_t kEvery = 1;
#endif

struct ResumedFixture : NodeFixture {
  // Nothing is found in its cache, so that everything is made once more.
  heddle::Engine engine{without_cache()};
  int begun = 0, steps = 0;  // of "out", in the last run

  heddle::EngineOptions without_cache() const {
    heddle::EngineOptions options = heddle::test::engine_options();
    options.compute[heddle::test::test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    options.output_dir = folder / "out";
    options.cache_bytes = 1;
    return options;
  }
  // The names that KSampler offers: a new sampler is among them.
  std::vector<std::string> names_of(const char* input) const {
    const heddle::engine::Json info =
        heddle::engine::parse_json(engine.object_info("KSampler"), "object_info");
    const heddle::engine::Json* node = info.find("KSampler");
    const heddle::engine::Json& choices =
        (node == nullptr ? info : *node).at("input").at("required").at(input).at(std::size_t{0});
    std::vector<std::string> names;
    for (const heddle::engine::Json& name : choices.as_array()) names.push_back(name.as_string());
    return names;
  }

  // A latent, or a list of some.
  std::vector<std::string> fields{"samples"};
  std::vector<float> all_of(const Results& results, const std::string& output) const {
    std::vector<float> all;
    for (const std::string& field : fields) {
      const std::vector<float> values = results.floats(output, field);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  std::vector<float> whole(const std::string& nodes, const std::string& output) {
    return all_of(engine.start(engine.parse(workflow(nodes)), {.fetch = {output}}).wait(), output);
  }

  // Every time that it tells of a step it is stopped at the next boundary.
  std::vector<float> in_pieces(const std::string& nodes, const std::string& output) {
    begun = steps = 0;
    std::atomic<Run*> under_way{nullptr};
    const auto observe = [&](const Event& event) {
      if (event.node != "out") return;
      const bool begins = event.kind == Event::Kind::node_started;
      const bool has_stepped = event.kind == Event::Kind::node_progress;
      if (begins) ++begun;
      if (has_stepped) ++steps;
      // Before its first step once, and behind each.
      if (!has_stepped && !(begins && begun == 1)) return;
      while (under_way == nullptr) std::this_thread::yield();
      under_way.load()->pause_and_release();
      under_way.load()->resume();
    };
    Run run = engine.start(engine.parse(workflow(nodes)), {observe, {output}});
    under_way = &run;
    return all_of(run.wait(), output);
  }

  void is_the_same_in_pieces(const std::string& nodes, const std::string& what, int steps,
                             const std::string& output = "out.LATENT") {
    const std::vector<float> expected = whole(nodes, output);
    BOOST_TEST((in_pieces(nodes, output) == expected), what << ": other bytes");
    BOOST_TEST(begun > steps, what << ": " << begun << " calls for " << steps << " steps");
  }
};

std::string resumed_out(const std::string& node) { return "\"out\": " + node + ", "; }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(resumed_samplers, ResumedFixture)

BOOST_AUTO_TEST_CASE(every_sampler_goes_on_from_every_step, *boost::unit_test::label("long")) {
  const std::vector<std::string> names = names_of("sampler_name");
  BOOST_TEST(names.size() >= 44u);
  for (std::size_t n = 0; n < names.size(); n += kEvery) {
    const std::string& name = names[n];
    const bool chooses_steps = name == "dpm_adaptive";
    const std::string changes = "\"steps\": 5, \"sampler_name\": \"" + name + "\"" +
                                (chooses_steps ? R"(, "denoise": 0.1)" : "");
    is_the_same_in_pieces(resumed_out(ksampler(changes)) + kLook, name, chooses_steps ? 3 : 4);
  }
}

BOOST_AUTO_TEST_CASE(a_masked_batch_goes_on) {
  is_the_same_in_pieces(
      R"("two_of": {"class_type": "RepeatLatentBatch", "inputs": {"samples": ["latent", 0], "amount": 2}},
         "masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["two_of", 0], "mask": ["mask", 0]}}, )" +
          resumed_out(ksampler(R"("latent_image": ["masked", 0], "sampler_name": "ddim")")) + kLook,
      "a mask", 3);
}

BOOST_AUTO_TEST_CASE(what_patches_and_caches_keep_goes_on, *boost::unit_test::label("long")) {
  const std::pair<const char*, const char*> patches[] = {
      {"APG", R"("eta": 0.5, "norm_threshold": 2.0, "momentum": -0.5)"},
      {"NAGuidance", R"("nag_scale": 3.0, "nag_alpha": 0.5, "nag_tau": 2.0)"},
      {"EasyCache",
       R"("reuse_threshold": 1.0, "start_percent": 0.1, "end_percent": 0.95, "verbose": false)"},
      {"LazyCache",
       R"("reuse_threshold": 1.0, "start_percent": 0.1, "end_percent": 0.95, "verbose": false)"}};
  // Two of them in one model, as windows and outputs that are kept know each other.
  const std::string windows =
      R"("windows": {"class_type": "ContextWindowsManual", "inputs": {"model": ["model", 0],
           "context_length": 4, "context_overlap": 1, "context_schedule": "standard_uniform", "dim": 3}},
         "patch": {"class_type": "EasyCache", "inputs": {"model": ["windows", 0], "reuse_threshold": 1.0,
           "start_percent": 0.1, "end_percent": 0.95, "verbose": false}}, )";
  is_the_same_in_pieces(
      windows + resumed_out(ksampler(R"("model": ["patch", 0], "steps": 8)")) + kLook,
      "context windows with EasyCache", 7);
  for (const auto& [type, inputs] : patches)
    for (const char* sampler : {"dpmpp_2m", "euler_ancestral_cfg_pp"}) {
      const std::string nodes =
          R"("patch": {"class_type": ")" + std::string(type) +
          R"(", "inputs": {"model": ["model", 0], )" + inputs + "}}, " +
          resumed_out(ksampler(R"("model": ["patch", 0], "steps": 8, "sampler_name": ")" +
                               std::string(sampler) + "\"")) +
          kLook;
      is_the_same_in_pieces(nodes, std::string(type) + " with " + sampler, 7);
    }
}

BOOST_AUTO_TEST_CASE(keyframes_of_hooks_go_on_where_they_were, *boost::unit_test::label("long")) {
  const std::string hooks =
      R"("kohya": {"class_type": "CreateHookLoraModelOnly", "inputs": {"lora_name": "kohya.safetensors", "strength_model": 0.5}},
         "early": {"class_type": "CreateHookKeyframe", "inputs": {"strength_mult": 1.0, "start_percent": 0.0}},
         "late": {"class_type": "CreateHookKeyframe", "inputs": {"strength_mult": 0.5, "start_percent": 0.3, "prev_hook_kf": ["early", 0]}},
         "timed": {"class_type": "SetHookKeyframes", "inputs": {"hooks": ["kohya", 0], "hook_kf": ["late", 0]}},
         "hooked": {"class_type": "ConditioningSetProperties", "inputs": {"cond_NEW": ["one", 0], "strength": 1.0,
           "set_cond_area": "default", "hooks": ["timed", 0]}}, )";
  is_the_same_in_pieces(
      hooks +
          resumed_out(
              ksampler(R"("positive": ["hooked", 0], "steps": 6, "sampler_name": "heun")")) +
          kLook,
      "hooks", 5);
  is_the_same_in_pieces(hooks + resumed_out(ksampler(R"("positive": ["hooked", 0], "denoise": 0.1,
      "sampler_name": "dpm_adaptive")")) +
                            kLook,
                        "hooks of a sampler that chooses its steps", 3);
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_sampler_go_on_with_two_guidances) {
  is_the_same_in_pieces(
      R"("noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
         "guider": {"class_type": "DualCFGGuider", "inputs": {"model": ["model", 0], "cond1": ["one", 0], "cond2": ["two", 0],
           "negative": ["three", 0], "cfg_conds": 3.0, "cfg_cond2_negative": 2.0, "style": "regular"}},
         "sampler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "dpmpp_3m_sde"}},
         "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 5, "denoise": 1.0}},
         "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
                 "sampler": ["sampler", 0], "sigmas": ["levels", 0], "latent_image": ["empty", 0]}}, )" +
          std::string(kLook),
      "SamplerCustomAdvanced", 4, "out.denoised_output");
}

BOOST_AUTO_TEST_CASE(what_a_model_made_of_reference_pictures_goes_on) {
  using heddle::test::seeded_tensor, heddle::test::write_safetensors;
  write_safetensors(folder / "models/diffusion_models/klein.safetensors",
                    heddle::test::seeded_model("klein", false, "flux2"));
  write_safetensors(folder / "texts.safetensors", {seeded_tensor("in.text.cross_attn", {1, 7, 72}),
                                                   seeded_tensor("in.picture", {1, 16, 1, 3})});
  const std::string texts = (folder / "texts.safetensors").string();
  is_the_same_in_pieces(
      R"("klein": {"class_type": "UNETLoader", "inputs": {"unet_name": "klein.safetensors", "weight_dtype": "default"}},
         "kept": {"class_type": "FluxKVCache", "inputs": {"model": ["klein", 0]}},
         "text": {"class_type": "test.conditioning", "inputs": {"path": ")" +
          texts + R"(", "prefix": "in.text", "option": ""}},
         "picture": {"class_type": "test.latent", "inputs": {"path": ")" +
          texts + R"(", "name": "in.picture"}},
         "shown": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["text", 0], "latent": ["picture", 0]}},
         "small": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 1}}, )" +
          resumed_out(
              ksampler(R"("model": ["kept", 0], "positive": ["shown", 0], "negative": ["shown", 0],
                                  "latent_image": ["small", 0], "cfg": 1)")) +
          kLook,
      "reference pictures", 3);
}

// One sampler that is called for each of three texts.
BOOST_AUTO_TEST_CASE(elements_of_a_list_that_are_done_are_not_done_again) {
  const std::string nodes =
      R"("texts": {"class_type": "CreateList", "inputs": {"inputs.input0": ["one", 0], "inputs.input1": ["two", 0],
           "inputs.input2": ["three", 0]}}, )" +
      resumed_out(ksampler(R"("positive": ["texts", 0], "steps": 3)")) + kLook;
  fields = {"0.samples", "1.samples", "2.samples"};
  is_the_same_in_pieces(nodes, "a list", 8);
  BOOST_TEST(steps == 9);  // none was taken twice
}

// Through files, of which each is the run as it was at one boundary.
BOOST_AUTO_TEST_CASE(every_checkpoint_of_a_run_leads_to_the_same_bytes) {
  const char* const names[] = {"lms",         "dpmpp_3m_sde",           "sa_solver_pece",
                               "seeds_3",     "euler_ancestral_cfg_pp", "uni_pc",
                               "dpm_adaptive"};
  for (std::size_t n = 0; n < std::size(names); n += kEvery) {
    const char* const name = names[n];
    const bool chooses_steps = std::string(name) == "dpm_adaptive";
    const std::string nodes =
        resumed_out(ksampler("\"steps\": 5, \"sampler_name\": \"" + std::string(name) + "\"" +
                             (chooses_steps ? R"(, "denoise": 0.1)" : ""))) +
        kLook;
    const std::vector<float> expected = whole(nodes, "out.LATENT");
    std::vector<std::filesystem::path> files;
    const auto observe = [&](const Event& event) {
      if (event.kind != Event::Kind::checkpoint_written) return;
      files.push_back(folder / (std::to_string(files.size()) + ".checkpoint"));
      std::filesystem::copy_file(event.text, files.back(),
                                 std::filesystem::copy_options::overwrite_existing);
    };
    heddle::StartOptions options{.observer = observe, .fetch = {"out.LATENT"}};
    options.checkpoint = folder / "run.checkpoint";
    options.checkpoint_note = "a note";
    const Results results = engine.start(engine.parse(workflow(nodes)), options).wait();
    BOOST_TEST((results.floats("out.LATENT", "samples") == expected), name);
    BOOST_TEST(!std::filesystem::exists(folder / "run.checkpoint"));
    BOOST_TEST(files.size() >= (chooses_steps ? 3u : 6u), name << ": " << files.size());
    for (const std::filesystem::path& file : files) {
      const auto checkpoint = heddle::RunCheckpoint::load(file);
      BOOST_TEST(checkpoint.note() == "a note");
      const Results resumed = engine.resume(checkpoint, {.fetch = {"out.LATENT"}}).wait();
      BOOST_TEST((resumed.floats("out.LATENT", "samples") == expected), name << ", " << file);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
