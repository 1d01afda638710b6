// Runs every sampler as its coefficients say, on a small non-linear model, and compares the result,
// the levels at which the model was called and the draws of noise with the samplers written out in
// sampler_reference.py.
#include "plugins/samplers/samplers.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>
#include <set>
#include <string>

#include "golden.h"

namespace {

using namespace heddle::samplers;
using testing::load;
using testing::numbers;

using State = std::vector<double>;

State toy_denoised(const State& x, double sigma) {
  State result;
  for (const double value : x) {
    result.push_back(0.9 * std::tanh(value / (1 + sigma)) + 0.1 * std::cos(3 * sigma + value));
  }
  return result;
}

void add_scaled(State& to, double factor, const State& from) {
  for (std::size_t k = 0; k < to.size(); ++k) to[k] += factor * from[k];
}

// The loop that samplers.h describes.
struct Loop {
  State start;
  State point;
  std::deque<State> evaluations;
  std::deque<State> slopes;
  std::vector<double> calls;
  std::size_t draws = 0;
  std::size_t most_evaluations = 0;

  explicit Loop(State x) : start(x), point(x) {}

  State combine(const Combination& combination) {
    State result(start.size(), 0.0);
    add_scaled(result, combination.x, start);
    for (std::size_t k = 0; k < combination.denoised.size(); ++k) {
      if (combination.denoised[k] != 0.0) {
        add_scaled(result, combination.denoised[k], evaluations.at(k));
      }
    }
    for (std::size_t k = 0; k < combination.slopes.size(); ++k) {
      if (combination.slopes[k] != 0.0) add_scaled(result, combination.slopes[k], slopes.at(k));
    }
    if (combination.noise != 0.0) {
      ++draws;
      for (std::size_t k = 0; k < result.size(); ++k) {
        const double draw =
            std::sin(1.7 * static_cast<double>(draws) + 0.9 * static_cast<double>(k) + 0.3);
        result[k] += combination.noise * 1.3 * draw;
      }
    }
    return result;
  }

  void run(const SamplerTraits& traits, const Sampler& sampler, std::span<const float> sigmas) {
    for (std::size_t i = 0; i + 1 < sigmas.size(); ++i) {
      const State start_of_step = start;
      const std::vector<Evaluation> evaluations_of_step = sampler_step(sampler, sigmas, i);
      most_evaluations = std::max(most_evaluations, evaluations_of_step.size());
      for (const Evaluation& evaluation : evaluations_of_step) {
        calls.push_back(evaluation.sigma);
        evaluations.push_front(toy_denoised(point, evaluation.sigma));
        evaluations.resize(std::min<std::size_t>(
            evaluations.size(), static_cast<std::size_t>(traits.denoised_history)));
        const State next = combine(evaluation.next);
        if (evaluation.after == Evaluation::After::kMoveStart) start = next;
        if (evaluation.after == Evaluation::After::kCorrectStart) start = combine(evaluation.start);
        point = next;
      }
      if (traits.slope_history > 0) {
        State slope = start_of_step;
        add_scaled(slope, -1.0, evaluations.front());
        for (double& value : slope) value /= sigmas[i];
        slopes.push_front(slope);
        slopes.resize(
            std::min<std::size_t>(slopes.size(), static_cast<std::size_t>(traits.slope_history)));
      }
    }
  }
};

void check_all_near(const State& values, const State& expected, double relative) {
  BOOST_REQUIRE(values.size() == expected.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    BOOST_TEST(std::abs(values[k] - expected[k]) <= relative * (1.0 + std::abs(expected[k])),
               "value " << k << ": " << values[k] << " is not " << expected[k]);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_sampler_equals_its_formula_written_out) {
  const rapidjson::Document golden = load("sampler_golden.json");
  const State start = numbers<double>(golden["start"]);
  std::set<std::string> seen;
  for (const auto& expected : golden["cases"].GetArray()) {
    const std::string name = expected["sampler"].GetString();
    const SamplerTraits* traits = find_sampler(name);
    BOOST_REQUIRE_MESSAGE(traits, name);
    seen.insert(name);
    const auto sigmas = numbers<float>(expected["sigmas"]);
    const Sampler sampler{
        .method = traits->method,
        .process = expected["flow"].GetBool() ? Process::kFlow : Process::kDiffusion,
        .eta = expected["eta"].GetDouble()};
    State x = start;
    for (double& value : x) value *= sigmas[0];
    Loop loop(x);
    BOOST_TEST_CONTEXT(name << " flow " << expected["flow"].GetBool() << " eta " << sampler.eta
                            << " steps " << sigmas.size() - 1) {
      loop.run(*traits, sampler, sigmas);
      check_all_near(loop.point, numbers<double>(expected["result"]), 1e-10);
      check_all_near(loop.calls, numbers<double>(expected["calls"]), 1e-12);
      BOOST_TEST(loop.draws == expected["draws"].GetUint());
      BOOST_TEST(loop.most_evaluations <= static_cast<std::size_t>(traits->most_evaluations));
      if (loop.draws > 0) BOOST_TEST(traits->draws_noise);
    }
  }
  std::set<std::string> gpu_names = {"dpmpp_2m_sde_gpu", "dpmpp_2m_sde_heun_gpu",
                                     "dpmpp_3m_sde_gpu"};
  seen.merge(gpu_names);
  BOOST_TEST(seen.size() == sampler_traits().size());
}

BOOST_AUTO_TEST_CASE(names_are_found_and_others_are_not) {
  for (const SamplerTraits& traits : sampler_traits()) {
    BOOST_TEST(find_sampler(traits.name) == &traits);
  }
  BOOST_TEST(find_sampler("Euler") == nullptr);
  BOOST_TEST((find_sampler("ddim")->method == Method::kEuler));
}

BOOST_AUTO_TEST_CASE(the_four_samplers_of_comfyui_discard_the_penultimate_level) {
  std::set<std::string_view> discarding;
  for (const SamplerTraits& traits : sampler_traits()) {
    if (traits.discards_penultimate_sigma) discarding.insert(traits.name);
  }
  BOOST_TEST((discarding ==
              std::set<std::string_view>{"dpm_2", "dpm_2_ancestral", "uni_pc", "uni_pc_bh2"}));
}

BOOST_AUTO_TEST_CASE(noise_factor_scales_the_noise_and_nothing_else) {
  const std::vector<float> sigmas = {0.9f, 0.7f, 0.4f, 0.1f, 0.0f};
  for (const SamplerTraits& traits : sampler_traits()) {
    if (!traits.draws_noise) continue;
    for (const Process process : {Process::kDiffusion, Process::kFlow}) {
      const Sampler whole{.method = traits.method, .process = process};
      const Sampler half{.method = traits.method, .process = process, .noise_factor = 0.5};
      for (std::size_t i = 0; i < 4; ++i) {
        const Combination a = sampler_step(whole, sigmas, i).back().next;
        const Combination b = sampler_step(half, sigmas, i).back().next;
        BOOST_TEST_CONTEXT(traits.name << " step " << i) {
          BOOST_TEST(std::abs(b.noise - 0.5 * a.noise) <= 1e-15);
          BOOST_TEST(b.x == a.x);
          BOOST_TEST((b.denoised == a.denoised));
        }
      }
    }
  }
}

// Not a limit that the reference takes (it moves the first level), but the same one.
BOOST_AUTO_TEST_CASE(sde_steps_from_pure_noise_take_the_limit_of_their_formulas) {
  const std::vector<float> sigmas = {1.0f, 0.75f, 0.5f, 0.25f, 0.0f};
  const std::vector<float> nearly = {1.0f - 0x1p-24f, 0.75f, 0.5f, 0.25f, 0.0f};
  for (const Method method : {Method::kDpmPp2mSde, Method::kDpmPp2mSdeHeun}) {
    const Sampler sampler{.method = method, .process = Process::kFlow};
    const Combination exact = sampler_step(sampler, sigmas, 0).back().next;
    const Combination close = sampler_step(sampler, nearly, 0).back().next;
    BOOST_TEST(exact.denoised[0] == 0.25);
    BOOST_TEST(std::abs(exact.noise - close.noise) < 1e-6);
    BOOST_TEST(std::abs(exact.x - close.x) < 1e-6);
    BOOST_TEST(sampler_step(sampler, sigmas, 1).back().next.denoised[1] == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(euler_runs_backwards_from_picture_to_noise) {
  const std::vector<float> sigmas = {0.25f, 0.5f};
  const Combination next = sampler_step({}, sigmas, 0).back().next;
  BOOST_TEST(next.x == 2.0);
  BOOST_TEST(next.denoised[0] == -1.0);
}

BOOST_AUTO_TEST_CASE(uni_pc_does_nothing_in_one_step_and_ends_above_zero) {
  const std::vector<float> one = {1.0f, 0.0f};
  const std::vector<float> two = {1.0f, 0.5f, 0.25f};
  BOOST_TEST(sampler_step({.method = Method::kUniPc}, one, 0).empty());
  BOOST_TEST(final_sigma(Method::kUniPc, one) == 0.001);
  BOOST_TEST(final_sigma(Method::kUniPcBh2, two) == 0.25);
  BOOST_TEST(final_sigma(Method::kEuler, one) == 0.0);
}

BOOST_AUTO_TEST_CASE(steps_without_a_finite_formula_are_refused_with_name_step_and_levels) {
  const std::vector<float> flow = {1.0f, 0.5f, 0.0f};
  const std::vector<float> equal = {0.9f, 0.5f, 0.5f, 0.3f, 0.0f};
  const std::vector<float> rising = {0.2f, 0.5f};
  const std::vector<float> zero = {0.0f, 0.5f};
  const Sampler sde{.method = Method::kErSde, .process = Process::kFlow};
  BOOST_CHECK_EXCEPTION(sampler_step(sde, flow, 0), std::invalid_argument, [](const auto& error) {
    const std::string text = error.what();
    return text.find("sampler er_sde, step 0 of 2") == 0 &&
           text.find("start a flow below sigma 1") != std::string::npos;
  });
  BOOST_CHECK_NO_THROW(sampler_step({.method = Method::kDpmPp2m}, equal, 1));
  BOOST_CHECK_THROW(sampler_step({.method = Method::kDpmPp2m}, equal, 2), std::invalid_argument);
  BOOST_CHECK_THROW(sampler_step({.method = Method::kEulerAncestral}, rising, 0),
                    std::invalid_argument);
  BOOST_CHECK_THROW(
      sampler_step({.method = Method::kEulerAncestral, .process = Process::kFlow}, rising, 0),
      std::invalid_argument);
  BOOST_CHECK_THROW(sampler_step({}, zero, 0), std::invalid_argument);
  BOOST_CHECK_THROW(sampler_step({}, flow, 2), std::invalid_argument);
  BOOST_CHECK_THROW(sampler_step({}, std::span<const float>(), 0), std::invalid_argument);
}
