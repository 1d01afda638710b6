// Nodes that make and change noise levels, through the engine. The schedules themselves are tested
// with the samplers (noise_schedule_test.cpp); here it is the nodes' wiring.
#include "tests/plugins/nodes/node_fixture.h"

using heddle::test::NodeFixture;

namespace {

struct LevelsFixture : NodeFixture {
  // SIGMAS of the node "out", whose class and inputs are given.
  std::vector<float> levels(const std::string& type, const std::string& inputs,
                            const std::string& output = "SIGMAS", const std::string& more = "") {
    return run(more + R"("out": {"class_type": ")" + type + R"(", "inputs": {)" + inputs + "}}, " +
                   kLook,
               {"out." + output})
        .floats("out." + output);
  }

  static constexpr const char* kBasic =
      R"("basic": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 4, "denoise": 1.0}}, )";
};

using Levels = std::vector<float>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(levels_nodes, LevelsFixture)

BOOST_AUTO_TEST_CASE(basic_scheduler_visits_the_models_levels) {
  // The unguided model is a discrete flow of shift 1: four even steps.
  const std::string model = R"("model": ["model", 0], )";
  BOOST_TEST(
      levels("BasicScheduler", model + R"("scheduler": "simple", "steps": 4, "denoise": 1.0)") ==
      (Levels{1, 0.75, 0.5, 0.25, 0}));
  BOOST_TEST(
      levels("BasicScheduler", model + R"("scheduler": "simple", "steps": 2, "denoise": 0.5)") ==
      (Levels{0.5, 0.25, 0}));
  BOOST_TEST(levels("BasicScheduler",
                    model + R"("scheduler": "simple", "steps": 2, "denoise": 0.0)") == Levels{});
}

BOOST_AUTO_TEST_CASE(a_guided_single_file_has_comfyuis_flux_levels) {
  const Levels found = levels(
      "BasicScheduler",
      R"("model": ["dev", 0], "scheduler": "simple", "steps": 20, "denoise": 1.0)", "SIGMAS",
      R"("dev": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors", "weight_dtype": "default"}}, )");
  // ComfyUI's, mu 1.15.
  BOOST_REQUIRE(found.size() == 21u);
  BOOST_TEST(found[1] == 0.9836081f, boost::test_tools::tolerance(2e-7f));
  BOOST_TEST(found[10] == 0.7595109f, boost::test_tools::tolerance(2e-7f));
  BOOST_TEST(found[19] == 0.1425294f, boost::test_tools::tolerance(4e-7f));
}

BOOST_AUTO_TEST_CASE(lists_are_split_flipped_and_begun_elsewhere) {
  const std::string list = R"("sigmas": ["basic", 0])";
  BOOST_TEST(levels("SplitSigmas", list + R"(, "step": 1)", "high_sigmas", kBasic) ==
             (Levels{1, 0.75}));
  BOOST_TEST(levels("SplitSigmas", list + R"(, "step": 1)", "low_sigmas", kBasic) ==
             (Levels{0.75, 0.5, 0.25, 0}));
  BOOST_TEST(levels("SplitSigmas", list + R"(, "step": 9)", "low_sigmas", kBasic) == Levels{});
  BOOST_TEST(levels("SplitSigmasDenoise", list + R"(, "denoise": 0.5)", "high_sigmas", kBasic) ==
             (Levels{1, 0.75, 0.5}));
  BOOST_TEST(levels("SplitSigmasDenoise", list + R"(, "denoise": 0.5)", "low_sigmas", kBasic) ==
             (Levels{0.5, 0.25, 0}));
  BOOST_TEST(levels("FlipSigmas", list, "SIGMAS", kBasic) == (Levels{0.0001f, 0.25, 0.5, 0.75, 1}));
  BOOST_TEST(levels("SetFirstSigma", list + R"(, "sigma": 0.875)", "SIGMAS", kBasic) ==
             (Levels{0.875, 0.75, 0.5, 0.25, 0}));
}

BOOST_AUTO_TEST_CASE(schedules_between_two_levels_keep_their_arguments_apart) {
  const std::string range = R"("steps": 3, "sigma_max": 8.0, "sigma_min": 2.0)";
  BOOST_TEST(levels("ExponentialScheduler", range) == (Levels{8, 4, 2, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(levels("KarrasScheduler", range + R"(, "rho": 1.0)") == (Levels{8, 5, 2, 0}));
  BOOST_TEST(levels("PolyexponentialScheduler", range + R"(, "rho": 1.0)").size() == 4u);
  const Levels laplace = levels("LaplaceScheduler", range + R"(, "mu": 0.0, "beta": 0.5)");
  BOOST_REQUIRE(laplace.size() == 3u);
  BOOST_TEST((laplace.front() <= 8.0f && laplace.back() >= 2.0f));
  BOOST_TEST(levels("VPScheduler", R"("steps": 3, "beta_d": 19.9, "beta_min": 0.1, "eps_s": 0.001)")
                 .size() == 4u);
}

BOOST_AUTO_TEST_CASE(published_tables_are_taken_by_the_models_name) {
  BOOST_TEST(levels("AlignYourStepsScheduler",
                    R"("model_type": "SD1", "steps": 10, "denoise": 1.0)")[0] == 14.6146412293f);
  BOOST_TEST(levels("OptimalStepsScheduler",
                    R"("model_type": "FLUX", "steps": 10, "denoise": 1.0)")[0] == 0.9968f);
  BOOST_TEST(levels("GITSScheduler", R"("coeff": 1.2, "steps": 2, "denoise": 1.0)") ==
             (Levels{14.61464119f, 0.803307f, 0}));
}

BOOST_AUTO_TEST_CASE(arguments_without_a_schedule_are_refused_with_their_values) {
  const std::string text = heddle::test::engine_refusal([&] {
    levels("KarrasScheduler", R"("steps": 3, "sigma_max": 1.0, "sigma_min": 2.0, "rho": 7.0)");
  });
  BOOST_TEST(text.find("sigma_min 2") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_batch_is_repeated_and_its_indices_continued) {
  const heddle::Results results = run(
      R"("part": {"class_type": "LatentFromBatch", "inputs": {"samples": ["latent", 0], "batch_index": 1, "length": 5}},
         "out": {"class_type": "RepeatLatentBatch", "inputs": {"samples": ["part", 0], "amount": 3}}, )" +
          std::string(kLook),
      {"out.LATENT"});
  BOOST_TEST(results.shape("out.LATENT", "samples") == (std::vector<std::int64_t>{3, 4, 6, 8}));
  const std::vector<float> all = goldens.floats("in.latent"),
                           repeated = results.floats("out.LATENT", "samples");
  for (std::size_t i = 0; i < repeated.size(); ++i)
    BOOST_REQUIRE(repeated[i] == all[all.size() / 2 + i % (all.size() / 2)]);
}

BOOST_AUTO_TEST_CASE(zeroed_and_joined_conditionings_keep_their_shape) {
  const heddle::Results results = run(
      R"("joined": {"class_type": "ConditioningConcat", "inputs": {"conditioning_to": ["one", 0], "conditioning_from": ["three", 0]}},
         "zero": {"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["one", 0]}},
         "a": {"class_type": "test.first", "inputs": {"list": ["joined", 0]}},
         "b": {"class_type": "test.first", "inputs": {"list": ["zero", 0]}},
         "look1": {"class_type": "test.look", "inputs": {"value": ["a", 0]}},
         "look2": {"class_type": "test.look", "inputs": {"value": ["b", 0]}})",
      {"a.value", "b.value"});
  BOOST_TEST(results.shape("a.value", "cross_attn") == (std::vector<std::int64_t>{1, 12, 24}));
  std::vector<float> both = goldens.floats("in.one.cross_attn");
  const std::vector<float> tail = goldens.floats("in.three.cross_attn");
  both.insert(both.end(), tail.begin(), tail.end());
  BOOST_TEST(results.floats("a.value", "cross_attn") == both);
  BOOST_TEST(results.floats("b.value", "cross_attn") == std::vector<float>(5 * 24, 0.0f));
  BOOST_TEST(results.floats("b.value", "pooled_output") == std::vector<float>(32, 0.0f));
}

// Of the second text as many tokens count as the first has; what it lacks are zeros.
BOOST_AUTO_TEST_CASE(averaged_conditionings_mix_tokens_and_pooled_numbers) {
  const auto average = [](const std::string& to, const std::string& from) {
    return R"({"class_type": "ConditioningAverage", "inputs": {"conditioning_to": [")" + to +
           R"(", 0], "conditioning_from": [")" + from +
           R"(", 0], "conditioning_to_strength": 0.25}})";
  };
  const heddle::Results results =
      run("\"cut\": " + average("one", "three") + ", \"filled\": " + average("three", "one") +
              R"(, "a": {"class_type": "test.first", "inputs": {"list": ["cut", 0]}},
             "b": {"class_type": "test.first", "inputs": {"list": ["filled", 0]}},
             "look1": {"class_type": "test.look", "inputs": {"value": ["a", 0]}},
             "look2": {"class_type": "test.look", "inputs": {"value": ["b", 0]}})",
          {"a.value", "b.value"});
  const auto mixed = [&](const std::string& to, const std::string& from, const std::string& what) {
    std::vector<float> first = goldens.floats("in." + to + "." + what),
                       second = goldens.floats("in." + from + "." + what);
    second.resize(first.size(), 0.0f);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = 0.25f * first[i] + 0.75f * second[i];
    return first;
  };
  for (const std::string what : {"cross_attn", "pooled_output"}) {
    BOOST_TEST(heddle::test::relative_error(results.floats("a.value", what),
                                            mixed("one", "three", what)) < 1e-6);
    BOOST_TEST(heddle::test::relative_error(results.floats("b.value", what),
                                            mixed("three", "one", what)) < 1e-6);
  }
}

BOOST_AUTO_TEST_SUITE_END()
