// Patches of predictions and latent operations on random numbers, against PyTorch
// (make_patch_goldens.py), and what they keep between evaluations.
#include "plugins/samplers/prediction_patch.h"

#include <boost/test/unit_test.hpp>

#include "golden.h"
#include "plugins/samplers/latent_operation.h"

namespace {

using namespace heddle::samplers;
using testing::load;
using testing::numbers;

constexpr double kOfSinglePrecision = 1e-5;

const rapidjson::Document& patch_golden() {
  static const rapidjson::Document golden = load("patch_golden.json");
  return golden;
}

PatchNumbers numbers_of_case(const rapidjson::Value& given) {
  PatchNumbers result;
  for (const auto& member : given["numbers"].GetObject())
    result.numbers.emplace_back(member.name.GetString(), member.value.GetDouble());
  return result;
}

void check_numbers(std::span<const float> values, const rapidjson::Value& expected,
                   const std::string& name) {
  const std::vector<double> wanted = numbers<double>(expected);
  BOOST_REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    BOOST_TEST(std::abs(values[i] - wanted[i]) <= kOfSinglePrecision * (1.0 + std::abs(wanted[i])),
               name << ", number " << i << ": " << values[i] << " is not " << wanted[i]);
}

struct Evaluated {
  ModelSampling sampling{{}, NoiseLevels::discrete_flow(1.0, 1.0), Prediction::kFlow};
  std::vector<float> x, conditioned, unconditioned, own, result;

  Evaluated()
      : x(numbers<float>(patch_golden()["x"])),
        conditioned(numbers<float>(patch_golden()["cond"])),
        unconditioned(numbers<float>(patch_golden()["uncond"])),
        own(numbers<float>(patch_golden()["own"])),
        result(x.size()) {}

  PatchPoint point(double cfg) {
    return {.shape = numbers<std::int64_t>(patch_golden()["shape"]),
            .sigma = patch_golden()["sigma"].GetDouble(),
            .cfg = cfg,
            .sampling = &sampling,
            .x = x,
            .conditioned = conditioned,
            .unconditioned = unconditioned,
            .own = own,
            .result = result,
            .memory = std::pmr::get_default_resource()};
  }
};

std::vector<ActivePatch> active(const std::string& name, const PatchNumbers& given,
                                std::span<const float> own) {
  std::vector<ActivePatch> patches;
  patches.push_back({find_patch(name), given, PatchState(std::pmr::get_default_resource()), own});
  return patches;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(prediction_patches)

BOOST_AUTO_TEST_CASE(each_patch_computes_its_formula) {
  for (const auto& given : patch_golden()["patches"].GetArray()) {
    const std::string name = given["name"].GetString();
    PatchNumbers of_case = numbers_of_case(given);
    if (name == "latent_operation_cfg") of_case.operation = "tonemap_reinhard";
    std::vector<ActivePatch> patches = active(name, of_case, {});
    // What keeps an average has seen the same once before.
    const int evaluations = of_case["momentum"] != 0.0 ? 2 : 1;
    Evaluated last;
    for (int k = 0; k < evaluations; ++k) {
      last = Evaluated();
      patches.front().own = last.own;
      PatchPoint point = last.point(given["cfg"].GetDouble());
      apply_patches(point, patches);
    }
    check_numbers(last.result, given["result"], name);
  }
}

BOOST_AUTO_TEST_CASE(an_average_begins_anew_where_the_level_rises) {
  const PatchNumbers given{{{"eta", 1.0}, {"norm_threshold", 0.0}, {"momentum", 0.5}}, {}};
  const auto result_at = [&](std::vector<ActivePatch>& patches, double sigma) {
    Evaluated now;
    PatchPoint point = now.point(3.0);
    point.sigma = sigma;
    apply_patches(point, patches);
    return now.result;
  };
  std::vector<ActivePatch> patches = active("apg", given, {});
  const std::vector<float> first = result_at(patches, 0.5);
  const std::vector<float> second = result_at(patches, 0.4);
  BOOST_TEST(first != second);
  BOOST_TEST(result_at(patches, 0.6) == first);
}

// At the level where it ends it does nothing.
BOOST_AUTO_TEST_CASE(guidance_towards_a_voice_is_open_at_its_end) {
  const PatchNumbers given{{{"scale", 2.0}, {"start_percent", 0.0}, {"end_percent", 0.5}}, {}};
  const auto result_at = [&](double sigma) {
    Evaluated now;
    std::vector<ActivePatch> patches = active("voice_guidance", given, now.own);
    PatchPoint point = now.point(1.0);
    point.sigma = sigma;
    apply_patches(point, patches);
    return now.result;
  };
  const Evaluated plain;
  const double end = plain.sampling.levels.percent_to_sigma(0.5);
  for (const auto& [sigma, scale] : {std::pair(end, 0.0f), std::pair(1.01 * end, 2.0f)}) {
    const std::vector<float> made = result_at(sigma);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const float wanted = plain.conditioned[i] + (plain.conditioned[i] - plain.own[i]) * scale;
      BOOST_TEST(std::abs(made[i] - wanted) <= kOfSinglePrecision * (1 + std::abs(wanted)), sigma);
    }
  }
}

BOOST_AUTO_TEST_CASE(of_several_that_mix_the_last_one_does) {
  Evaluated both, alone;
  std::vector<ActivePatch> patches = active("rescale_cfg", {{{"multiplier", 0.7}}, {}}, {});
  for (ActivePatch& more : active("renorm_cfg", {{{"cfg_trunc", 0.0}}, {}}, {}))
    patches.push_back(std::move(more));
  PatchPoint point = both.point(4.0);
  apply_patches(point, patches);
  BOOST_TEST(both.result == alone.conditioned);
}

BOOST_AUTO_TEST_CASE(guidance_of_sound_leaves_pictures_to_those_that_mix_before) {
  const auto result_of = [](bool by_sound, std::size_t pictures) {
    Evaluated now;
    std::vector<ActivePatch> patches = active("rescale_cfg", {{{"multiplier", 0.7}}, {}}, {});
    if (by_sound)
      for (ActivePatch& more : active("sound_cfg", {{{"audio_cfg", 7.0}}, {}}, {}))
        patches.push_back(std::move(more));
    PatchPoint point = now.point(4.0);
    point.pictures = pictures;
    apply_patches(point, patches);
    return now.result;
  };
  BOOST_TEST(result_of(true, 0) == result_of(false, 0));
  BOOST_TEST(result_of(true, 1) != result_of(false, 1));
}

BOOST_AUTO_TEST_CASE(tangential_damping_leaves_a_run_without_guidance_alone) {
  Evaluated now;
  std::vector<ActivePatch> patches = active("tcfg", {}, {});
  PatchPoint point = now.point(1.0);
  point.has_unconditioned = false;
  const std::vector<float> before = now.unconditioned;
  apply_patches(point, patches);
  BOOST_TEST(now.unconditioned == before);
}

BOOST_AUTO_TEST_CASE(latent_operations_compute_their_formulas) {
  const heddle::Shape shape = numbers<std::int64_t>(patch_golden()["shape"]);
  for (const auto& given : patch_golden()["operations"].GetArray()) {
    std::vector<float> latent = numbers<float>(patch_golden()["cond"]);
    PatchNumbers operation = numbers_of_case(given);
    operation.operation = given["name"].GetString();
    apply_latent_operation(latent, shape, operation, *std::pmr::get_default_resource());
    check_numbers(latent, given["result"], operation.operation);
  }
}

BOOST_AUTO_TEST_CASE(a_blur_wider_than_the_latent_is_refused) {
  std::vector<float> latent(4);
  const PatchNumbers operation{{{"sharpen_radius", 2}, {"sigma", 1.0}, {"alpha", 0.1}}, "sharpen"};
  BOOST_CHECK_THROW(
      apply_latent_operation(latent, {1, 1, 2, 2}, operation, *std::pmr::get_default_resource()),
      std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
