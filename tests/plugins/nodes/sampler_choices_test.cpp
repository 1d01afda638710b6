// All samplers with all schedules, and the nodes that give samplers numbers.
#include <cmath>

#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/sampler_names.h"

using heddle::Results;
using heddle::test::kAllSamplers;
using heddle::test::NodeFixture;

namespace {

constexpr const char* kAllSchedules[] = {"simple",      "sgm_uniform",      "karras",
                                         "exponential", "ddim_uniform",     "beta",
                                         "normal",      "linear_quadratic", "kl_optimal"};

std::string look_at(const std::string& node) {
  return ", \"look_" + node + R"(": {"class_type": "test.look", "inputs": {"value": [")" + node +
         "\", 0]}}";
}

// Draws with the SAMPLER node of a class.
std::string drawn_by(const std::string& name, const std::string& type, const std::string& inputs) {
  return "\"pick_" + name + R"(": {"class_type": ")" + type + R"(", "inputs": {)" + inputs +
         "}}, \"" + name + R"(": {"class_type": "SamplerCustom", "inputs": {"model": ["model", 0],
         "add_noise": true, "noise_seed": 7, "cfg": 3.0, "positive": ["one", 0], "negative": ["two", 0],
         "sampler": ["pick_)" +
         name + R"(", 0], "sigmas": ["levels", 0], "latent_image": ["empty", 0]}})" + look_at(name);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sampler_choices, NodeFixture)

// Under a sanitizer, which takes many times as long, each with one of the schedules.
BOOST_AUTO_TEST_CASE(every_sampler_with_every_schedule_gives_a_finite_picture,
                     *boost::unit_test::label("long")) {
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
  constexpr std::size_t kEvery = std::size(kAllSchedules);
#else
  constexpr std::size_t kEvery = 1;
#endif
  std::size_t number = 0;
  for (const char* sampler : kAllSamplers) {
    std::string nodes;
    std::vector<std::string> wanted;
    std::size_t place = number++;
    for (const char* schedule : kAllSchedules) {
      if (place++ % kEvery != 0) continue;
      const std::string name = schedule;
      nodes += (nodes.empty() ? "" : ", ") + ("\"" + name + "\": ") +
               ksampler("\"steps\": 3, \"cfg\": 2, \"sampler_name\": \"" + std::string(sampler) +
                        "\", \"scheduler\": \"" + name + "\"") +
               look_at(name);
      wanted.push_back(name + ".LATENT");
    }
    const Results results = run(nodes, wanted);
    for (const std::string& output : wanted) {
      float most = 0;
      for (const float value : results.floats(output, "samples"))
        most = std::isfinite(value) ? std::max(most, std::abs(value)) : INFINITY;
      BOOST_TEST(std::isfinite(most), sampler << " with " << output);
      BOOST_TEST(most > 0.0f, sampler << " with " << output);
    }
  }
}

// With the numbers that are usual the nodes choose what the names mean.
BOOST_AUTO_TEST_CASE(sampler_nodes_with_usual_numbers_equal_the_names_byte_for_byte,
                     *boost::unit_test::label("long")) {
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"euler_ancestral_cfg_pp", {"SamplerEulerAncestralCFGPP", R"("eta": 1, "s_noise": 1)"}},
      {"dpmpp_2s_ancestral", {"SamplerDPMPP_2S_Ancestral", R"("eta": 1, "s_noise": 1)"}},
      {"lms", {"SamplerLMS", R"("order": 4)"}},
      {"dpmpp_3m_sde", {"SamplerDPMPP_3M_SDE", R"("eta": 1, "s_noise": 1, "noise_device": "cpu")"}},
      {"dpmpp_2m_sde_heun",
       {"SamplerDPMPP_2M_SDE",
        R"("solver_type": "heun", "eta": 1, "s_noise": 1, "noise_device": "gpu")"}},
      {"dpmpp_sde",
       {"SamplerDPMPP_SDE", R"("eta": 1, "s_noise": 1, "r": 0.5, "noise_device": "cpu")"}},
      {"dpm_adaptive",
       {"SamplerDPMAdaptative",
        R"("order": 3, "rtol": 0.05, "atol": 0.0078, "h_init": 0.05, "pcoeff": 0, "icoeff": 1, "dcoeff": 0,
           "accept_safety": 0.81, "eta": 0, "s_noise": 1)"}},
      {"er_sde",
       {"SamplerER_SDE", R"("solver_type": "ER-SDE", "max_stage": 3, "eta": 1, "s_noise": 1)"}},
      {"sa_solver",
       {"SamplerSASolver",
        R"("model": ["model", 0], "eta": 1, "sde_start_percent": 0.2, "sde_end_percent": 0.8, "s_noise": 1,
           "predictor_order": 3, "corrector_order": 4, "use_pece": false, "simple_order_2": false)"}},
      {"seeds_2", {"SamplerSEEDS2", R"("solver_type": "phi_1", "eta": 1, "s_noise": 1, "r": 0.5)"}},
      {"lcm", {"SamplerLCM", R"("s_noise": 1, "s_noise_end": 1, "noise_clip_std": 0)"}},
      {"euler_cfg_pp", {"SamplerEulerCFGpp", R"("version": "regular")"}}};
  for (const auto& [name, node] : cases) {
    const Results results = run(
        R"("levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 4, "denoise": 1}}, )" +
            drawn_by("custom", node.first, node.second) + ", \"usual\": " +
            ksampler("\"sampler_name\": \"" + std::string(name) + "\"") + look_at("usual"),
        {"custom.output", "usual.LATENT"});
    BOOST_TEST(
        results.floats("custom.output", "samples") == results.floats("usual.LATENT", "samples"),
        name);
  }
}

BOOST_AUTO_TEST_CASE(the_numbers_of_sampler_nodes_change_the_picture) {
  const Results results = run(
      R"("levels": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple", "steps": 4, "denoise": 1}}, )" +
          drawn_by("ode", "SamplerER_SDE",
                   R"("solver_type": "ODE", "max_stage": 3, "eta": 1, "s_noise": 1)") +
          ", " +
          drawn_by("still", "SamplerER_SDE",
                   R"("solver_type": "Reverse-time SDE", "max_stage": 3, "eta": 0, "s_noise": 1)") +
          ", " +
          drawn_by("first", "SamplerER_SDE",
                   R"("solver_type": "ODE", "max_stage": 1, "eta": 1, "s_noise": 1)") +
          ", " +
          drawn_by("clipped", "SamplerLCM",
                   R"("s_noise": 1, "s_noise_end": 1, "noise_clip_std": 0.5)") +
          ", " +
          drawn_by("whole", "SamplerLCM", R"("s_noise": 1, "s_noise_end": 1, "noise_clip_std": 0)"),
      {"ode.output", "still.output", "first.output", "clipped.output", "whole.output"});
  const auto samples = [&](const char* name) {
    return results.floats(std::string(name) + ".output", "samples");
  };
  // The ODE is the reverse-time SDE without noise.
  BOOST_TEST(samples("ode") == samples("still"));
  BOOST_TEST(samples("ode") != samples("first"));
  BOOST_TEST(samples("clipped") != samples("whole"));
}

BOOST_AUTO_TEST_SUITE_END()
