// Runs every sampler as its coefficients say, on a small non-linear model, and compares the result,
// the levels at which the model was called and the draws of noise with the samplers written out in
// sampler_reference.py and method_reference.py.
#include "plugins/samplers/samplers.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>
#include <set>
#include <string>

#include "golden.h"
#include "tests/support/sampler_names.h"

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

State toy_plain(const State& x, double sigma) {
  State result;
  for (const double value : x)
    result.push_back(0.7 * std::tanh(value / (1 + 0.5 * sigma)) -
                     0.2 * std::sin(2 * sigma + value));
  return result;
}

// A run as the nodes tell it to a sampler, with levels that percents name evenly.
struct ToyRun {
  std::vector<heddle_sampler_option> options;
  heddle_sampler_run run{};

  explicit ToyRun(std::span<const float> sigmas, bool flow = false, double eta = 1.0,
                  double noise_factor = 1.0, std::vector<heddle_sampler_option> given = {})
      : options(std::move(given)) {
    run.flow = flow ? 1 : 0;
    run.eta = eta;
    run.noise_factor = noise_factor;
    run.sigma_count = static_cast<std::uint32_t>(sigmas.size());
    run.sigmas = sigmas.data();
    run.option_count = static_cast<std::uint32_t>(options.size());
    run.options = options.data();
    run.percent_to_sigma = [](const void*, double percent) { return 1.0 - percent; };
  }
};

std::vector<Evaluation> step_of(const char* name, const ToyRun& toy, std::size_t i) {
  return sampler_step(*find_sampler(name), toy.run, i);
}

std::vector<Evaluation> step_of(const char* name, std::span<const float> sigmas, std::size_t i,
                                bool flow = false) {
  return step_of(name, ToyRun(sigmas, flow), i);
}

// The loop that heddle/diffusion/samplers.h describes.
struct Loop {
  State start;
  State point;
  std::deque<State> evaluations;
  std::deque<State> plain;
  std::deque<State> slopes;
  std::deque<State> plain_slopes;
  std::deque<State> noise;
  std::vector<double> calls;
  std::vector<double> spans;  // of a draw: from, to

  explicit Loop(State x) : start(x), point(x) {}

  void draw(const Evaluation& evaluation) {
    spans.push_back(evaluation.noise_from);
    spans.push_back(evaluation.noise_to);
    const double number = static_cast<double>(spans.size() / 2);
    State drawn;
    for (std::size_t k = 0; k < start.size(); ++k)
      drawn.push_back(1.3 * std::sin(1.7 * number + 0.9 * static_cast<double>(k) + 0.3));
    noise.push_front(drawn);
  }

  State combine(const Combination& combination, bool drew) const {
    State result(start.size(), 0.0);
    for (const heddle_sampler_term& term : combination) {
      const auto& kept = [&]() -> const State& {
        switch (term.of) {
          case HEDDLE_SAMPLER_DENOISED:
            return evaluations.at(term.age);
          case HEDDLE_SAMPLER_UNCONDITIONED:
            return plain.at(term.age);
          case HEDDLE_SAMPLER_SLOPE:
            return slopes.at(term.age);
          case HEDDLE_SAMPLER_UNCONDITIONED_SLOPE:
            return plain_slopes.at(term.age);
          case HEDDLE_SAMPLER_NOISE:
            return noise.at(term.age - (drew ? 0 : 1));
          default:
            return start;
        }
      };
      add_scaled(result, term.factor, kept());
    }
    return result;
  }

  bool look(const Evaluation& evaluation) {
    calls.push_back(evaluation.sigma);
    evaluations.push_front(toy_denoised(point, evaluation.sigma));
    plain.push_front(toy_plain(point, evaluation.sigma));
    bool draws = false;
    for (const Combination* sum : {&evaluation.next, &evaluation.start})
      for (const heddle_sampler_term& term : *sum)
        draws = draws || (term.of == HEDDLE_SAMPLER_NOISE && term.age == 0);
    if (draws) draw(evaluation);
    return draws;
  }

  void step(const std::vector<Evaluation>& made) {
    const State start_of_step = start;
    State slope = start, plain_slope = start;
    for (std::size_t k = 0; k < made.size(); ++k) {
      const bool drew = look(made[k]);
      if (k == 0) {
        add_scaled(slope, -1.0, evaluations.front());
        add_scaled(plain_slope, -1.0, plain.front());
      }
      const State next = combine(made[k].next, drew);
      if (made[k].after == HEDDLE_SAMPLER_CORRECT_START) start = combine(made[k].start, drew);
      if (made[k].after == HEDDLE_SAMPLER_MOVE_START) start = next;
      point = next;
    }
    if (made.empty()) return;
    for (double& value : slope) value /= made.front().sigma;
    for (double& value : plain_slope) value /= made.front().sigma;
    slopes.push_front(slope);
    plain_slopes.push_front(plain_slope);
  }

  void run(const SamplerMethod& method, const heddle_sampler_run& run) {
    if (method.attempt != nullptr) return attempts(method, run);
    for (std::size_t i = 0; i + 1 < run.sigma_count; ++i) {
      std::vector<Evaluation> made = sampler_step(method, run, i);
      for (Evaluation& evaluation : made) {
        if (evaluation.noise_from != 0 || evaluation.noise_to != 0) continue;
        evaluation.noise_from = run.sigmas[i];
        evaluation.noise_to = run.sigmas[i + 1];
      }
      step(made);
    }
  }

  void attempts(const SamplerMethod& method, const heddle_sampler_run& run) {
    heddle_sampler_attempt state{};
    state.error = -1;
    State accepted = start, next, lower;
    while (true) {
      const std::vector<Evaluation> made = sampler_attempt(method, run, state);
      if (!next.empty() && state.accepted != 0) {
        accepted = lower;
        start = next;
        if (state.noise != 0.0) {
          draw({});
          add_scaled(start, state.noise, noise.front());
        }
      }
      point = start;
      if (made.empty()) return;
      for (const Evaluation& evaluation : made) {
        look(evaluation);
        next = combine(evaluation.next, false);
        lower = combine(evaluation.start, false);
        point = next;
      }
      double squares = 0;
      for (std::size_t k = 0; k < next.size(); ++k) {
        const double size = std::max(std::abs(lower[k]), std::abs(accepted[k]));
        squares +=
            std::pow((lower[k] - next[k]) / std::max(state.absolute, state.relative * size), 2);
      }
      state.error = std::sqrt(squares / static_cast<double>(next.size()));
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
  std::set<std::string> seen;
  for (const char* file : {"sampler_golden.json", "method_golden.json"}) {
    const rapidjson::Document golden = load(file);
    const State start = numbers<double>(golden["start"]);
    for (const auto& expected : golden["cases"].GetArray()) {
      const std::string name = expected["sampler"].GetString();
      const SamplerMethod* method = find_sampler(name);
      BOOST_REQUIRE_MESSAGE(method, name);
      seen.insert(name);
      const auto sigmas = numbers<float>(expected["sigmas"]);
      std::vector<heddle_sampler_option> options;
      if (expected.HasMember("options"))
        for (const auto& option : expected["options"].GetObject())
          options.push_back({option.name.GetString(), option.value.GetDouble()});
      const double eta = expected["eta"].GetDouble();
      const ToyRun toy(sigmas, expected["flow"].GetBool(), eta, 1.0, options);
      State x = start;
      for (double& value : x) value *= sigmas[0];
      Loop loop(x);
      BOOST_TEST_CONTEXT(name << " flow " << expected["flow"].GetBool() << " eta " << eta
                              << " steps " << sigmas.size() - 1 << " options " << options.size()) {
        loop.run(*method, toy.run);
        check_all_near(loop.point, numbers<double>(expected["result"]), 1e-10);
        check_all_near(loop.calls, numbers<double>(expected["calls"]), 1e-12);
        BOOST_TEST(loop.spans.size() / 2 == expected["draws"].GetUint());
        if (expected.HasMember("spans"))
          check_all_near(loop.spans, numbers<double>(expected["spans"]), 2e-7);
        if (!loop.spans.empty()) BOOST_TEST((method->flags & HEDDLE_SAMPLER_DRAWS_NOISE) != 0);
      }
    }
  }
  const std::set<std::string> gpu_names = {"dpmpp_sde_gpu", "dpmpp_2m_sde_gpu",
                                           "dpmpp_2m_sde_heun_gpu", "dpmpp_3m_sde_gpu"};
  seen.insert(gpu_names.begin(), gpu_names.end());
  BOOST_TEST(seen.size() == sampler_methods().size());
}

BOOST_AUTO_TEST_CASE(the_names_are_those_of_comfyui_in_its_order) {
  std::vector<std::string> names;
  for (const SamplerMethod& method : sampler_methods()) {
    names.emplace_back(method.name);
    BOOST_TEST(find_sampler(method.name) == &method);
  }
  const std::vector<std::string> expected(std::begin(heddle::test::kAllSamplers),
                                          std::end(heddle::test::kAllSamplers));
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  BOOST_TEST(find_sampler("Euler") == nullptr);
}

BOOST_AUTO_TEST_CASE(the_four_samplers_of_comfyui_discard_the_penultimate_level) {
  std::set<std::string_view> discarding;
  for (const SamplerMethod& method : sampler_methods()) {
    if ((method.flags & HEDDLE_SAMPLER_DISCARDS_PENULTIMATE) != 0) discarding.insert(method.name);
  }
  BOOST_TEST((discarding ==
              std::set<std::string_view>{"dpm_2", "dpm_2_ancestral", "uni_pc", "uni_pc_bh2"}));
}

BOOST_AUTO_TEST_CASE(only_ddim_draws_the_noise_of_masks_anew) {
  for (const SamplerMethod& method : sampler_methods())
    BOOST_TEST(((method.flags & HEDDLE_SAMPLER_NEW_MASK_NOISE) != 0) ==
               (std::string(method.name) == "ddim"));
}

BOOST_AUTO_TEST_CASE(noise_factor_scales_the_noise_and_nothing_else) {
  const std::vector<float> sigmas = {0.9f, 0.7f, 0.4f, 0.1f, 0.0f};
  for (const SamplerMethod& method : sampler_methods()) {
    if ((method.flags & HEDDLE_SAMPLER_DRAWS_NOISE) == 0 || method.step == nullptr) continue;
    for (const bool flow : {false, true}) {
      const ToyRun whole(sigmas, flow), half(sigmas, flow, 1.0, 0.5);
      for (std::size_t i = 0; i < 4; ++i) {
        const Combination a = sampler_step(method, whole.run, i).back().next;
        const Combination b = sampler_step(method, half.run, i).back().next;
        BOOST_TEST_CONTEXT(method.name << " step " << i) {
          BOOST_REQUIRE(a.size() == b.size());
          for (std::size_t k = 0; k < a.size(); ++k) {
            BOOST_TEST(a[k].of == b[k].of);
            const double part = a[k].of == HEDDLE_SAMPLER_NOISE ? 0.5 : 1.0;
            BOOST_TEST(std::abs(b[k].factor - part * a[k].factor) <= 1e-15);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sde_steps_from_pure_noise_take_the_limit_of_their_formulas) {
  const std::vector<float> sigmas = {1.0f, 0.75f, 0.5f, 0.25f, 0.0f};
  const std::vector<float> nearly = {1.0f - 0x1p-24f, 0.75f, 0.5f, 0.25f, 0.0f};
  for (const char* name : {"dpmpp_2m_sde", "dpmpp_2m_sde_heun"}) {
    const Combination exact = step_of(name, sigmas, 0, true).back().next;
    const Combination close = step_of(name, nearly, 0, true).back().next;
    const auto apart = [&](std::int32_t of) {
      return std::abs(factor_of(exact, of) - factor_of(close, of));
    };
    BOOST_TEST(factor_of(exact, HEDDLE_SAMPLER_DENOISED) == 0.25);
    BOOST_TEST(apart(HEDDLE_SAMPLER_NOISE) < 1e-6);
    BOOST_TEST(apart(HEDDLE_SAMPLER_START) < 1e-6);
    BOOST_TEST(factor_of(step_of(name, sigmas, 1, true).back().next, HEDDLE_SAMPLER_DENOISED, 1) ==
               0.0);
  }
}

BOOST_AUTO_TEST_CASE(euler_runs_backwards_from_picture_to_noise) {
  const std::vector<float> sigmas = {0.25f, 0.5f};
  const Combination next = step_of("euler", sigmas, 0).back().next;
  BOOST_TEST(factor_of(next, HEDDLE_SAMPLER_START) == 2.0);
  BOOST_TEST(factor_of(next, HEDDLE_SAMPLER_DENOISED) == -1.0);
}

BOOST_AUTO_TEST_CASE(uni_pc_does_nothing_in_one_step_and_ends_above_zero) {
  const std::vector<float> one = {1.0f, 0.0f};
  const std::vector<float> two = {1.0f, 0.5f, 0.25f};
  BOOST_TEST(step_of("uni_pc", one, 0).empty());
  BOOST_TEST(final_sigma(*find_sampler("uni_pc"), ToyRun(one).run) == 0.001);
  BOOST_TEST(final_sigma(*find_sampler("uni_pc_bh2"), ToyRun(two).run) == 0.25);
  BOOST_TEST(final_sigma(*find_sampler("euler"), ToyRun(one).run) == 0.0);
}

BOOST_AUTO_TEST_CASE(the_clean_picture_of_lcm_is_noised_as_its_node_says) {
  const std::vector<float> sigmas = {4.0f, 2.0f, 1.0f, 0.0f};
  const ToyRun toy(sigmas, false, 1.0, 1.0, {{"s_noise_end", 0.5}, {"noise_clip_std", 2.5}});
  const Evaluation first = step_of("lcm", toy, 0).back(), second = step_of("lcm", toy, 1).back();
  BOOST_TEST(factor_of(first.next, HEDDLE_SAMPLER_NOISE) == 2.0);
  BOOST_TEST(factor_of(second.next, HEDDLE_SAMPLER_NOISE) == 0.75);
  BOOST_TEST(first.noise_clip == 2.5);
}

BOOST_AUTO_TEST_CASE(steps_without_a_finite_formula_are_refused_with_name_step_and_levels) {
  const std::vector<float> flow = {1.0f, 0.5f, 0.0f};
  const std::vector<float> equal = {0.9f, 0.5f, 0.5f, 0.3f, 0.0f};
  const std::vector<float> rising = {0.2f, 0.5f};
  const std::vector<float> zero = {0.0f, 0.5f};
  BOOST_CHECK_EXCEPTION(step_of("er_sde", flow, 0, true), std::invalid_argument,
                        [](const auto& error) {
                          const std::string text = error.what();
                          return text.find("sampler er_sde, step 0 of 2") == 0 &&
                                 text.find("start a flow below sigma 1") != std::string::npos;
                        });
  BOOST_CHECK_NO_THROW(step_of("dpmpp_2m", equal, 1));
  BOOST_CHECK_THROW(step_of("dpmpp_2m", equal, 2), std::invalid_argument);
  BOOST_CHECK_THROW(step_of("euler_ancestral", rising, 0), std::invalid_argument);
  BOOST_CHECK_THROW(step_of("euler_ancestral", rising, 0, true), std::invalid_argument);
  BOOST_CHECK_THROW(step_of("euler", zero, 0), std::invalid_argument);
  BOOST_CHECK_THROW(step_of("euler", flow, 2), std::invalid_argument);
  heddle_sampler_attempt still{.error = -1.0};
  const ToyRun stands(flow, false, 1.0, 1.0, {{"h_init", 0.0}, {"order", 2.0}});
  BOOST_CHECK_THROW(sampler_attempt(*find_sampler("dpm_adaptive"), stands.run, still),
                    std::invalid_argument);
  BOOST_CHECK_THROW(step_of("euler", std::span<const float>(), 0), std::invalid_argument);
}
