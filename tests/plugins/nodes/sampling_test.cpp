// The sampling nodes against runs written out in PyTorch (make_goldens.py).
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Results;
using heddle::test::engine_refusal;
using heddle::test::NodeFixture;

namespace {

std::string out(const std::string& node) { return "\"out\": " + node; }

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sampling, NodeFixture)

BOOST_AUTO_TEST_CASE(euler_with_cfg_1_runs_without_the_negative_conditioning) {
  compare_latent(out(ksampler(R"("cfg": 1)")), "euler");
}

BOOST_AUTO_TEST_CASE(guidance_mixes_both_conditionings) {
  compare_latent(out(ksampler()), "guidance");
}

BOOST_AUTO_TEST_CASE(every_kind_of_sampler_runs_in_the_one_loop) {
  // Two evaluations, histories, slopes, fresh noise, a corrected start, a finite first level, a
  // Brownian path, draws used twice, a look without the positive conditioning.
  for (const char* name :
       {"heun", "dpmpp_2m", "euler_ancestral", "lms", "dpmpp_2s_ancestral", "ipndm", "dpmpp_2m_sde",
        "uni_pc", "dpmpp_3m_sde", "dpmpp_sde", "seeds_2", "seeds_3", "sa_solver",
        "exp_heun_2_x0_sde", "euler_ancestral_cfg_pp", "gradient_estimation_cfg_pp", "dpm_fast"})
    compare_latent(out(ksampler("\"steps\": 5, \"sampler_name\": \"" + std::string(name) + "\"")),
                   name);
}

BOOST_AUTO_TEST_CASE(a_sampler_that_refuses_attempts_begins_them_anew_where_they_began) {
  const std::string nodes =
      R"("pick": {"class_type": "SamplerDPMAdaptative", "inputs": {"order": 3, "rtol": 0.002, "atol": 0.002,
           "h_init": 1.5, "pcoeff": 0, "icoeff": 1, "dcoeff": 0, "accept_safety": 0.81, "eta": 0, "s_noise": 1}},
         "levels": {"class_type": "ExponentialScheduler", "inputs": {"steps": 3, "sigma_max": 0.02, "sigma_min": 0.001}},
         "out": {"class_type": "SamplerCustom", "inputs": {"model": ["model", 0], "add_noise": true, "noise_seed": 7,
           "cfg": 3.0, "positive": ["one", 0], "negative": ["two", 0], "sampler": ["pick", 0], "sigmas": ["levels", 0],
           "latent_image": ["latent", 0]}}, )";
  compare(run(nodes + kLook, {"out.output"}).floats("out.output", "samples"), "dpm_adaptive");
}

BOOST_AUTO_TEST_CASE(the_largest_seed_draws_its_own_noise) {
  compare_latent(out(ksampler(R"("cfg": 1, "steps": 2, "seed": 18446744073709551615)")),
                 "large_seed");
}

BOOST_AUTO_TEST_CASE(denoise_keeps_a_part_of_a_raw_latent) {
  compare_latent(out(ksampler(R"("denoise": 0.6, "latent_image": ["latent", 0])")), "denoise");
}

BOOST_AUTO_TEST_CASE(a_noise_mask_keeps_the_rest_of_the_picture) {
  compare_latent(
      R"("masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["latent", 0], "mask": ["mask", 0]}}, )" +
          out(ksampler(R"("cfg": 1, "latent_image": ["masked", 0])")),
      "mask");
}

BOOST_AUTO_TEST_CASE(ddim_noises_what_a_mask_keeps_anew) {
  compare_latent(
      R"("masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["latent", 0], "mask": ["mask", 0]}}, )" +
          out(ksampler(R"("cfg": 1, "sampler_name": "ddim", "latent_image": ["masked", 0])")),
      "mask_ddim");
}

BOOST_AUTO_TEST_CASE(combined_conditionings_are_averaged_by_their_strength) {
  compare_latent(
      R"("weak": {"class_type": "ConditioningSetAreaStrength", "inputs": {"conditioning": ["three", 0], "strength": 0.5}},
         "both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["one", 0], "conditioning_2": ["weak", 0]}}, )" +
          out(ksampler(R"("cfg": 2, "steps": 3, "positive": ["both", 0])")),
      "combine");
}

// In one step from noise to level 0 the result is the prediction itself.
BOOST_AUTO_TEST_CASE(a_conditioning_without_strength_predicts_zeros) {
  const auto drawn = [&](const std::string& changes) {
    return run(
               R"("none": {"class_type": "ConditioningSetAreaStrength", "inputs": {"conditioning": ["one", 0], "strength": 0}},
                  "nothing": {"class_type": "ConditioningSetAreaStrength", "inputs": {"conditioning": ["two", 0], "strength": 0}}, )" +
                   out(ksampler(R"("steps": 1, )" + changes)) + ", " + kLook,
               {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  std::vector<float> alone = drawn(R"("cfg": 1, "positive": ["two", 0])");
  BOOST_TEST(drawn(R"("cfg": 1, "positive": ["none", 0])") ==
             std::vector<float>(alone.size(), 0.0f));
  for (float& value : alone) value *= -2;  // 3 * 0 + (1 - 3) * D
  BOOST_TEST(heddle::test::relative_error(drawn(R"("cfg": 3, "positive": ["none", 0])"), alone) <
             kTolerance);
  std::vector<float> positive = drawn(R"("cfg": 1)");
  for (float& value : positive) value *= 3;
  BOOST_TEST(heddle::test::relative_error(drawn(R"("cfg": 3, "negative": ["nothing", 0])"),
                                          positive) < kTolerance);
}

BOOST_AUTO_TEST_CASE(ksampler_advanced_draws_a_part_of_the_schedule_without_noise) {
  compare_latent(
      out(R"({"class_type": "KSamplerAdvanced", "inputs": {"model": ["model", 0], "add_noise": "disable",
          "noise_seed": 7, "steps": 6, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
          "positive": ["one", 0], "negative": ["two", 0], "latent_image": ["latent", 0],
          "start_at_step": 2, "end_at_step": 4, "return_with_leftover_noise": "enable"}})"),
      "advanced");
}

BOOST_AUTO_TEST_CASE(samplers_and_schedules_of_another_plugin_are_used_by_their_names) {
  compare_latent(
      out(ksampler(R"("cfg": 1, "sampler_name": "test_euler", "scheduler": "test_halves")")),
      "given_levels");
}

// A plugin's own, and those that ship: what they do not know, and numbers out of range, are told by
// their names. Who says nothing of options takes any.
BOOST_AUTO_TEST_CASE(an_option_that_the_sampler_does_not_know_is_refused_by_name) {
  const auto nodes = [](const std::string& name, const std::string& option, double value) {
    return "\"pick\": {\"class_type\": \"test.one_option\", \"inputs\": {\"name\": \"" + name +
           "\", \"option\": \"" + option + "\", \"value\": " + std::to_string(value) +
           R"(}}, "levels": {"class_type": "ExponentialScheduler", "inputs": {"steps": 2, "sigma_max": 1, "sigma_min": 0.1}},
           "out": {"class_type": "SamplerCustom", "inputs": {"model": ["model", 0], "add_noise": true, "noise_seed": 7,
             "cfg": 1.0, "positive": ["one", 0], "negative": ["two", 0], "sampler": ["pick", 0], "sigmas": ["levels", 0],
             "latent_image": ["empty", 0]}}, )" +
           kLook;
  };
  const auto drawn = [&](const std::string& name, const std::string& option, double value) {
    return run(nodes(name, option, value), {"out.output"}).floats("out.output", "samples");
  };
  struct Case {
    const char *name, *option;
    double value;
    const char* words;
  };
  const Case cases[] = {
      {"test_euler", "prat", 1,
       "the sampler 'test_euler' has no option 'prat'. Those it has: part"},
      {"test_euler", "part", 0.25,
       "the option 'part' of the sampler 'test_euler' is 0.25; it ranges from 0.5 to 1"},
      {"lms", "odrer", 2, "the sampler 'lms' has no option 'odrer'. Those it has: order"},
      {"lms", "order", 101, "is 101; it ranges from 1 to 100"},
      {"euler", "order", 1,
       "the sampler 'euler' has no option 'order'. It has none: leave it out."},
      {"test_elur", "part", 1, "there is no sampler 'test_elur'"}};
  for (const Case& c : cases) {
    const std::string refused = engine_refusal([&] { drawn(c.name, c.option, c.value); });
    BOOST_TEST(says(refused, c.words), refused);
  }
  const std::vector<float> whole = drawn("test_euler", "part", 1),
                           half = drawn("test_euler", "part", 0.5);
  BOOST_TEST((whole != half));
  BOOST_TEST((drawn("test_short", "part", 0.5) == half));
  BOOST_TEST((drawn("test_short", "prat", 0.5) == whole));
}

BOOST_AUTO_TEST_CASE(the_parts_together_equal_ksampler_byte_for_byte) {
  const Results results = run(
      R"("noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
         "guider": {"class_type": "CFGGuider", "inputs": {"model": ["model", 0], "positive": ["one", 0], "negative": ["two", 0], "cfg": 3.0}},
         "sampler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "dpmpp_2m"}},
         "levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 4, "denoise": 1.0}},
         "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
                 "sampler": ["sampler", 0], "sigmas": ["levels", 0], "latent_image": ["empty", 0]}},
         "custom": {"class_type": "SamplerCustom", "inputs": {"model": ["model", 0], "add_noise": true, "noise_seed": 7, "cfg": 3.0,
                 "positive": ["one", 0], "negative": ["two", 0], "sampler": ["sampler", 0], "sigmas": ["levels", 0],
                 "latent_image": ["empty", 0]}},
         "look2": {"class_type": "test.look", "inputs": {"value": ["custom", 0]}},
         "look3": {"class_type": "test.look", "inputs": {"value": ["whole", 0]}},
         "whole": )" +
          ksampler(R"("sampler_name": "dpmpp_2m")") + ", " + kLook,
      {"out.output", "out.denoised_output", "custom.output", "whole.LATENT"});
  const std::vector<float> whole = results.floats("whole.LATENT", "samples");
  BOOST_TEST(whole == results.floats("out.output", "samples"));
  BOOST_TEST(whole == results.floats("custom.output", "samples"));
  // At level 0 the picture is what the model saw last.
  BOOST_TEST(whole == results.floats("out.denoised_output", "samples"));
}

BOOST_AUTO_TEST_CASE(two_halves_of_a_schedule_equal_the_whole_byte_for_byte) {
  const std::string common =
      R"("model": ["model", 0], "noise_seed": 7, "steps": 4, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
         "positive": ["one", 0], "negative": ["two", 0], )";
  const Results results = run(
      R"("first": {"class_type": "KSamplerAdvanced", "inputs": {)" + common +
          R"("latent_image": ["empty", 0], "add_noise": "enable", "start_at_step": 0, "end_at_step": 2,
             "return_with_leftover_noise": "enable"}},
         "second": {"class_type": "KSamplerAdvanced", "inputs": {)" +
          common +
          R"("latent_image": ["first", 0], "add_noise": "disable", "start_at_step": 2, "end_at_step": 10000,
             "return_with_leftover_noise": "disable"}},
         "look2": {"class_type": "test.look", "inputs": {"value": ["second", 0]}},
         "out": )" +
          ksampler() + ", " + kLook,
      {"out.LATENT", "second.LATENT"});
  // The cut lies at level 1/2, where undoing and redoing the noise scaling is exact.
  BOOST_TEST(results.floats("out.LATENT", "samples") == results.floats("second.LATENT", "samples"));
}

BOOST_AUTO_TEST_CASE(flux_guidance_and_the_size_of_the_picture_reach_the_model) {
  compare_latent(
      R"("dev": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors", "weight_dtype": "default"}},
         "sized": {"class_type": "ModelSamplingFlux", "inputs": {"model": ["dev", 0], "max_shift": 1.0, "base_shift": 0.25, "width": 512, "height": 384}},
         "told": {"class_type": "FluxGuidance", "inputs": {"conditioning": ["one", 0], "guidance": 2.0}}, )" +
          out(ksampler(R"("model": ["sized", 0], "cfg": 1, "steps": 3, "positive": ["told", 0])")),
      "flux_guidance");
}

BOOST_AUTO_TEST_CASE(both_shift_nodes_space_the_levels_of_a_flow) {
  for (const char* type : {"ModelSamplingSD3", "ModelSamplingAuraFlow"})
    compare_latent(R"("shifted": {"class_type": ")" + std::string(type) +
                       R"(", "inputs": {"model": ["model", 0], "shift": 3.0}}, )" +
                       out(ksampler(R"("model": ["shifted", 0], "cfg": 1)")),
                   "shift");
}

BOOST_AUTO_TEST_CASE(an_item_of_a_batch_keeps_the_noise_it_had_in_it) {
  const Results results = run(
      R"("two_empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 2}},
         "second": {"class_type": "LatentFromBatch", "inputs": {"samples": ["two_empty", 0], "batch_index": 1, "length": 1}},
         "alone": )" +
          ksampler(R"("cfg": 1, "steps": 1, "latent_image": ["second", 0])") +
          R"(, "look2": {"class_type": "test.look", "inputs": {"value": ["alone", 0]}},
         "out": )" +
          ksampler(R"("cfg": 1, "steps": 1, "latent_image": ["two_empty", 0])") + ", " + kLook,
      {"out.LATENT", "alone.LATENT"});
  // 4 x 6 x 8 values are whole groups of 16, so item by item is as all at once.
  const std::vector<float> both = results.floats("out.LATENT", "samples");
  const std::vector<float> alone = results.floats("alone.LATENT", "samples");
  BOOST_REQUIRE(both.size() == 2 * alone.size());
  BOOST_TEST(alone == std::vector<float>(both.begin() + std::ptrdiff_t(alone.size()), both.end()));
}

BOOST_AUTO_TEST_CASE(denoise_0_hands_the_latent_on) {
  const Results results =
      run(out(ksampler(R"("denoise": 0.0, "latent_image": ["empty", 0])")) + ", " + kLook,
          {"out.LATENT"});
  BOOST_TEST(results.shape("out.LATENT", "samples") == (std::vector<std::int64_t>{1, 4, 6, 8}));
  for (const float value : results.floats("out.LATENT", "samples")) BOOST_TEST(value == 0.0f);
}

BOOST_AUTO_TEST_CASE(a_latent_of_another_autoencoder_is_refused_with_both_channel_counts) {
  const std::string text = engine_refusal([&] {
    run(R"("full": {"class_type": "test.latent", "inputs": {"path": ")" +
            (here() / "goldens.safetensors").string() + R"(", "name": "pipeline.picture"}}, )" +
            out(ksampler(R"("latent_image": ["full", 0])")) + ", " + kLook,
        {"out.LATENT"});
  });
  BOOST_TEST(says(text, "12 channels"), text);
  BOOST_TEST(says(text, "reads 4"), text);
}

BOOST_AUTO_TEST_SUITE_END()
