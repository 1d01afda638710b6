// Schedules against PyTorch, NumPy and SciPy, against diffusers where it makes the same ones, and
// against the values of ComfyUI itself.
#include "plugins/samplers/noise_schedule.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>

#include "golden.h"
#include "named_levels.h"
#include "plugins/samplers/tabled_schedule.h"

namespace {

using namespace heddle::samplers;
using testing::crc_of;
using testing::load;
using testing::named_levels;
using testing::numbers;

// The reference's vectorised exp, pow and tan, and the order of its single-precision sums.
constexpr double kSingle = 3e-6;

NoiseSchedule schedule_of(const char* name) {
  const auto found = find_noise_schedule(name);
  BOOST_REQUIRE_MESSAGE(found, name);
  return *found;
}

void check_equal(std::span<const float> sigmas, std::span<const float> expected, double relative) {
  BOOST_REQUIRE_EQUAL(sigmas.size(), expected.size());
  for (std::size_t k = 0; k < sigmas.size(); ++k) {
    const double error = std::abs(static_cast<double>(sigmas[k]) - expected[k]);
    BOOST_TEST(error <= relative * std::abs(expected[k]),
               "value " << k << ": " << sigmas[k] << " is not " << expected[k]);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(schedules_equal_pytorch_numpy_and_scipy) {
  const rapidjson::Document golden = load("schedule_golden.json");
  BOOST_TEST(golden["cases"].Size() == 8u * 9 * 3);
  for (const auto& expected : golden["cases"].GetArray()) {
    const char* levels = expected["levels"].GetString();
    const char* name = expected["schedule"].GetString();
    const int steps = expected["steps"].GetInt();
    BOOST_TEST_CONTEXT(levels << " " << name << " " << steps) {
      check_equal(make_sigmas(schedule_of(name), named_levels().at(levels), steps),
                  numbers<float>(expected["sigmas"]), kSingle);
    }
  }
}

BOOST_AUTO_TEST_CASE(schedules_that_pick_from_a_table_have_the_same_bits_for_every_step_count) {
  const rapidjson::Document golden = load("schedule_golden.json");
  for (const auto& expected : golden["exact"].GetArray()) {
    const char* levels = expected["levels"].GetString();
    const char* name = expected["schedule"].GetString();
    Sigmas all;
    for (int steps = expected["steps"][0].GetInt(); steps <= expected["steps"][1].GetInt();
         ++steps) {
      const Sigmas sigmas = make_sigmas(schedule_of(name), named_levels().at(levels), steps);
      all.insert(all.end(), sigmas.begin(), sigmas.end());
    }
    BOOST_TEST_CONTEXT(levels << " " << name) {
      BOOST_TEST(all.size() == expected["count"].GetUint());
      BOOST_TEST(crc_of(all) == expected["crc32"].GetString());
    }
  }
}

// diffusers accumulates the alphas of SD in single precision.
BOOST_AUTO_TEST_CASE(schedules_agree_with_diffusers_where_it_makes_the_same) {
  const rapidjson::Document golden = load("schedule_golden.json");
  BOOST_TEST(golden["diffusers"].Size() == 7u);
  for (const auto& expected : golden["diffusers"].GetArray()) {
    const char* levels = expected["levels"].GetString();
    const char* name = expected["schedule"].GetString();
    const auto sigmas = numbers<float>(expected["sigmas"]);
    const double relative = std::string(levels) == "sd" ? 5e-5 : 1e-6;
    BOOST_TEST_CONTEXT(levels << " " << name) {
      const int steps = static_cast<int>(sigmas.size()) - 1;
      check_equal(make_sigmas(schedule_of(name), named_levels().at(levels), steps), sigmas,
                  relative);
    }
  }
}

// Printed with seven digits by ComfyUI's own functions.
BOOST_AUTO_TEST_CASE(schedules_equal_the_values_that_comfyui_prints) {
  struct Case {
    const char* levels;
    const char* schedule;
    int steps;
    Sigmas sigmas;
  };
  const Case cases[] = {
      {"sd", "normal", 20, {14.61464f,  10.7468f,    8.081519f,  6.204935f,  4.855652f,  3.865378f,
                            3.123761f,  2.557166f,   2.115658f,  1.764822f,  1.480581f,  1.245813f,
                            1.048142f,  0.8784281f,  0.7297186f, 0.5964335f, 0.4735847f, 0.3555454f,
                            0.2321642f, 0.02916716f, 0}},
      {"sd", "karras", 20, {14.61464f,   11.72537f,   9.340202f, 7.383618f, 5.789413f,  4.499835f,
                            3.464747f,   2.640841f,   1.990916f, 1.483211f, 1.090786f,  0.7909461f,
                            0.5647216f,  0.3963898f,  0.273038f, 0.184168f, 0.1213414f, 0.07786006f,
                            0.04848137f, 0.02916718f, 0}},
      {"sd",
       "sgm_uniform",
       8,
       {14.61464f, 7.301982f, 4.086081f, 2.495967f, 1.61558f, 1.071159f, 0.6951495f, 0.3997014f,
        0}},
      {"sd",
       "ddim_uniform",
       10,
       {8.390685f, 5.134431f, 3.347764f, 2.292854f, 1.623692f, 1.168216f, 0.8356528f, 0.5740502f,
        0.3461867f, 0.04131441f, 0}},
      {"sd",
       "beta",
       10,
       {14.61464f, 11.54277f, 7.371844f, 4.372802f, 2.615236f, 1.618279f, 1.027329f, 0.6548854f,
        0.3955097f, 0.1990586f, 0}},
      {"sd",
       "linear_quadratic",
       10,
       {14.61464f, 14.54157f, 14.4685f, 14.39542f, 14.32235f, 14.24928f, 13.62084f, 11.8817f,
        9.031848f, 5.07128f, 0}},
      {"flux_1.15", "simple", 20, {1,          0.9836081f, 0.9660138f, 0.94708f,   0.9266474f,
                                   0.9045308f, 0.8805131f, 0.8543382f, 0.8257016f, 0.7942392f,
                                   0.7595109f, 0.7209803f, 0.6779867f, 0.6297071f, 0.575103f,
                                   0.5128441f, 0.4411998f, 0.3578746f, 0.2597584f, 0.1425294f,
                                   0}},
      {"flux_1.15", "normal", 5, {1, 0.9045671f, 0.7596263f, 0.5131596f, 0.000996524f, 0}},
      {"flow_1_1", "simple", 4, {1, 0.75f, 0.5f, 0.25f, 0}},
      {"flow_3_1000",
       "sgm_uniform",
       8,
       {1, 0.9546938f, 0.900359f, 0.833998f, 0.7511211f, 0.6446863f, 0.5029851f, 0.3050089f, 0}},
      {"flow_3_1",
       "simple",
       8,
       {1, 0.9545454f, 0.9f, 0.8333333f, 0.75f, 0.6428571f, 0.5f, 0.3f, 0}},
      {"flow_3.1_1", "simple", 20, {1,          0.9833055f, 0.9653979f, 0.9461401f, 0.9253732f,
                                    0.9029126f, 0.8785425f, 0.8520085f, 0.8230088f, 0.7911834f,
                                    0.7560976f, 0.7172236f, 0.6739131f, 0.6253603f, 0.5705522f,
                                    0.5081967f, 0.4366197f, 0.3536122f, 0.2561983f, 0.1402715f,
                                    0}},
      {"flow_8_1000",
       "simple",
       6,
       {1, 0.9757239f, 0.9412594f, 0.8888889f, 0.8004794f, 0.6159521f, 0}},
  };
  for (const Case& expected : cases) {
    BOOST_TEST_CONTEXT(expected.levels << " " << expected.schedule) {
      // Half a unit of the seventh digit is 5e-7 at most.
      check_equal(make_sigmas(schedule_of(expected.schedule), named_levels().at(expected.levels),
                              expected.steps),
                  expected.sigmas, 1e-6);
    }
  }
  BOOST_TEST(make_sigmas(NoiseSchedule::kDdimUniform, named_levels().at("sd"), 30).size() == 32u);
  check_equal(
      ltxv_sigmas(8, ltxv_mu(4992)),
      Sigmas{1, 0.9700236f, 0.9312622f, 0.8791898f, 0.8055301f, 0.693347f, 0.5017202f, 0.1f, 0},
      1e-6);
}

BOOST_AUTO_TEST_CASE(names_are_listed_in_order_and_found) {
  const auto names = noise_schedule_names();
  BOOST_TEST(names.size() == 9u);
  for (std::size_t k = 0; k < names.size(); ++k) {
    BOOST_TEST((find_noise_schedule(names[k]) == static_cast<NoiseSchedule>(k)));
  }
  BOOST_TEST(!find_noise_schedule("Simple"));
}

BOOST_AUTO_TEST_CASE(one_step_goes_from_the_highest_level_to_zero) {
  for (const char* name : {"simple", "sgm_uniform", "karras", "exponential", "beta", "normal",
                           "linear_quadratic", "kl_optimal"}) {
    for (const char* levels : {"sd", "flux_1.15", "flow_3_1000"}) {
      const float top = named_levels().at(levels).sigma_max();
      BOOST_TEST_CONTEXT(name << " " << levels) {
        check_equal(make_sigmas(schedule_of(name), named_levels().at(levels), 1), Sigmas{top, 0.0f},
                    kSingle);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(denoise_keeps_the_end_of_a_longer_schedule) {
  const NoiseLevels& levels = named_levels().at("sd");
  const Sigmas whole = make_sigmas(NoiseSchedule::kKarras, levels, 33);
  const Sigmas expected(whole.end() - 21, whole.end());
  // int(20 / 0.6) is 33.
  BOOST_TEST(basic_sigmas(NoiseSchedule::kKarras, levels, 20, 0.6) == expected);
  BOOST_TEST(ksampler_sigmas({NoiseSchedule::kKarras, 20, 0.6}, levels) == expected);
  BOOST_TEST(basic_sigmas(NoiseSchedule::kKarras, levels, 20, 0.0).empty());
  BOOST_TEST(ksampler_sigmas({NoiseSchedule::kKarras, 20, 0.0}, levels).empty());
  BOOST_TEST(basic_sigmas(NoiseSchedule::kKarras, levels, 20, 1.0) ==
             make_sigmas(NoiseSchedule::kKarras, levels, 20));
}

BOOST_AUTO_TEST_CASE(ksampler_takes_nearly_full_denoise_as_full_and_basic_scheduler_does_not) {
  const NoiseLevels& levels = named_levels().at("flow_3_1000");
  const Sigmas full = make_sigmas(NoiseSchedule::kSimple, levels, 100000);
  const double nearly = 0.99995;
  BOOST_TEST(ksampler_sigmas({NoiseSchedule::kSimple, 100000, nearly}, levels) == full);
  const Sigmas longer = make_sigmas(NoiseSchedule::kSimple, levels, 100005);
  BOOST_TEST(basic_sigmas(NoiseSchedule::kSimple, levels, 100000, nearly) ==
             Sigmas(longer.end() - 100001, longer.end()));
}

BOOST_AUTO_TEST_CASE(discarding_the_penultimate_level_asks_for_one_more_step) {
  const NoiseLevels& levels = named_levels().at("sd");
  SamplerSchedule wanted{.schedule = NoiseSchedule::kNormal, .steps = 10};
  wanted.penultimate = SamplerSchedule::Penultimate::kDiscard;
  Sigmas expected = make_sigmas(NoiseSchedule::kNormal, levels, 11);
  expected.erase(expected.end() - 2);
  BOOST_TEST(ksampler_sigmas(wanted, levels) == expected);
  BOOST_TEST(expected.size() == 11u);
  wanted.denoise = 0.5;
  expected = make_sigmas(NoiseSchedule::kNormal, levels, 21);
  expected.erase(expected.end() - 2);
  BOOST_TEST(ksampler_sigmas(wanted, levels) == Sigmas(expected.end() - 11, expected.end()));
}

BOOST_AUTO_TEST_CASE(a_part_of_a_schedule_keeps_both_ends_of_its_steps) {
  const Sigmas sigmas = {1.0f, 0.8f, 0.6f, 0.4f, 0.2f, 0.0f};
  using Leftover = StepRange::Leftover;
  BOOST_TEST(cut_sigmas(sigmas, {}) == sigmas);
  BOOST_TEST((cut_sigmas(sigmas, {1, 3, Leftover::kKeep}) == Sigmas{0.8f, 0.6f, 0.4f}));
  BOOST_TEST((cut_sigmas(sigmas, {1, 3, Leftover::kRemove}) == Sigmas{0.8f, 0.6f, 0.0f}));
  BOOST_TEST((cut_sigmas(sigmas, {3, 10000, Leftover::kRemove}) == Sigmas{0.4f, 0.2f, 0.0f}));
  BOOST_TEST(cut_sigmas(sigmas, {5, 10000}).empty());
  BOOST_TEST(cut_sigmas(sigmas, {3, 3}).empty());
  BOOST_CHECK_THROW(cut_sigmas(sigmas, {-1, 3}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_flow_that_starts_as_pure_noise_gets_a_finite_first_level_where_asked_for) {
  const NoiseLevels& flow = named_levels().at("flow_3_1000");
  const Sigmas sigmas = {1.0f, 0.5f, 0.0f};
  const Sigmas moved = with_finite_first_level(sigmas, flow);
  BOOST_TEST(moved[0] == static_cast<float>(flow.percent_to_sigma(1e-4)));
  BOOST_TEST(moved[0] < 1.0f);
  BOOST_TEST(moved[1] == 0.5f);
  BOOST_TEST(with_finite_first_level(sigmas, named_levels().at("sd")) == sigmas);
  const Sigmas later = {0.9f, 0.5f, 0.0f};
  BOOST_TEST(with_finite_first_level(later, flow) == later);
}

BOOST_AUTO_TEST_CASE(schedules_of_their_own_nodes_follow_their_formulas) {
  const Sigmas poly = polyexponential_sigmas(5, 0.03, 15.0, 1.0);
  check_equal(poly, exponential_sigmas(5, 0.03, 15.0), kSingle);
  check_equal(polyexponential_sigmas(3, 0.04, 4.0, 2.0),
              Sigmas{4.0f, 0.04f * std::pow(100.0f, 0.25f), 0.04f, 0.0f}, kSingle);
  check_equal(vp_sigmas(2),
              Sigmas{std::sqrt(std::expm1(10.05f)), std::sqrt(std::expm1(1.0995e-4f)), 0.0f},
              kSingle);
  const float quarter = std::pow(0.50001f, 0.5f);
  check_equal(laplace_sigmas(5, 0.03, 14.6, 0.0, 0.5),
              Sigmas{14.6f, 1.0f / quarter, 1.0f, quarter, 0.03f}, kSingle);
  const NoiseLevels& sd = named_levels().at("sd");
  BOOST_TEST(turbo_sigmas(sd, 1) == (Sigmas{sd.sigma(999.0f), 0.0f}));
  BOOST_TEST(turbo_sigmas(sd, 2, 0.5) == (Sigmas{sd.sigma(499.0f), sd.sigma(399.0f), 0.0f}));
  BOOST_TEST(turbo_sigmas(sd, 5, 0.2) == (Sigmas{sd.sigma(199.0f), sd.sigma(99.0f), 0.0f}));
  BOOST_TEST(ltxv_sigmas(4, 0.0, std::nullopt) == (Sigmas{1.0f, 0.75f, 0.5f, 0.25f, 0.0f}));
  BOOST_TEST(ltxv_sigmas(2, 0.0, 0.0) == (Sigmas{1.0f, 0.0f, 0.0f}));
  BOOST_TEST(ltxv_sigmas(1, 2.0) == (Sigmas{1.0f, 0.0f}));
}

BOOST_AUTO_TEST_CASE(published_tables_are_interpolated_in_the_logarithm) {
  const rapidjson::Document golden = load("schedule_golden.json");
  BOOST_TEST(golden["published"].Size() == 10u);
  for (const auto& expected : golden["published"].GetArray()) {
    const auto table = find_step_table(expected["model_type"].GetString());
    BOOST_REQUIRE(table);
    BOOST_TEST_CONTEXT(expected["model_type"].GetString() << " " << expected["steps"].GetInt()) {
      check_equal(
          tabled_sigmas(*table, expected["steps"].GetInt(), expected["denoise"].GetDouble()),
          numbers<float>(expected["sigmas"]), 1.2e-7);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_published_table_falls_and_has_its_own_length) {
  const std::pair<const char*, int> tables[] = {{"SD1", 10},  {"SDXL", 10}, {"SVD", 10},
                                                {"FLUX", 10}, {"Wan", 20},  {"Chroma", 40}};
  for (const auto& [name, steps] : tables) {
    const Sigmas sigmas = tabled_sigmas(*find_step_table(name), steps);
    BOOST_TEST(sigmas.size() == static_cast<std::size_t>(steps) + 1);
    BOOST_TEST(std::is_sorted(sigmas.rbegin(), sigmas.rend()), name);
    // Twice the steps visit the same levels.
    const Sigmas finer = tabled_sigmas(*find_step_table(name), 2 * steps);
    for (std::size_t k = 0; k + 1 < sigmas.size(); ++k) {
      BOOST_TEST(std::abs(finer[2 * k] - sigmas[k]) <= 1.2e-7 * sigmas[k], name << " " << k);
    }
  }
  BOOST_TEST(!find_step_table("sd1"));
  BOOST_TEST(tabled_sigmas(StepTable::kAlignSd1, 10, 0.0).empty());
  BOOST_CHECK_THROW(tabled_sigmas(StepTable::kAlignSd1, 0), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(step_counts_and_ranges_that_make_no_schedule_are_refused) {
  const NoiseLevels& levels = named_levels().at("sd");
  for (const auto name : noise_schedule_names()) {
    BOOST_CHECK_THROW(make_sigmas(*find_noise_schedule(name), levels, 0), std::invalid_argument);
    BOOST_CHECK_THROW(make_sigmas(*find_noise_schedule(name), levels, -4), std::invalid_argument);
  }
  BOOST_CHECK_THROW(basic_sigmas(NoiseSchedule::kSimple, levels, 20, 1e-9), std::invalid_argument);
  BOOST_CHECK_THROW(karras_sigmas(5, 0.0, 1.0), std::invalid_argument);
  BOOST_CHECK_THROW(exponential_sigmas(5, 2.0, 1.0), std::invalid_argument);
  BOOST_CHECK_THROW(beta_sigmas(levels, 5, 0.0, 1.0), std::invalid_argument);
  BOOST_CHECK_EXCEPTION(
      make_sigmas(NoiseSchedule::kSimple, levels, -4), std::invalid_argument,
      [](const auto& error) { return std::string(error.what()).find("simple: -4 steps") == 0; });
}
