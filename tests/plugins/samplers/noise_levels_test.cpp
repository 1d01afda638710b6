// Tables and conversions against PyTorch's single-precision arithmetic. Tables made of products and
// quotients have its bits; those made by exp, log or tan agree to the accuracy of such functions.
#include "plugins/samplers/noise_levels.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "golden.h"
#include "named_levels.h"

namespace {

using heddle::samplers::NoiseLevels;
using heddle::samplers::testing::crc_of;
using heddle::samplers::testing::load;
using heddle::samplers::testing::named_levels;
using heddle::samplers::testing::numbers;

// One unit in the last place is 1.2e-7; exp multiplies that of its argument (up to 9) on top.
constexpr double kFunctions = 1.5e-6;

bool has_exact_table(const std::string& name) { return name != "edm" && name != "v"; }

void check_near(double value, double expected, double relative) {
  BOOST_TEST(std::abs(value - expected) <= relative * std::abs(expected),
             value << " is not " << expected);
}

}  // namespace

BOOST_AUTO_TEST_CASE(tables_equal_pytorch) {
  const rapidjson::Document golden = load("schedule_golden.json");
  BOOST_TEST(golden["tables"].Size() == named_levels().size());
  for (const auto& table : golden["tables"].GetArray()) {
    const std::string name = table["levels"].GetString();
    BOOST_TEST_CONTEXT(name) {
      const std::span<const float> sigmas = named_levels().at(name).sigmas();
      BOOST_REQUIRE(sigmas.size() == table["count"].GetUint());
      if (has_exact_table(name)) BOOST_TEST(crc_of(sigmas) == table["crc32"].GetString());
      const auto some = numbers<float>(table["some"]);
      for (std::size_t k = 0; k < some.size(); ++k) {
        check_near(sigmas[k * (sigmas.size() / 5)], some[k], kFunctions);
      }
      check_near(sigmas.back(), table["last"].GetDouble(), kFunctions);
    }
  }
}

BOOST_AUTO_TEST_CASE(timesteps_and_their_levels_equal_pytorch) {
  const rapidjson::Document golden = load("schedule_golden.json");
  for (const auto& table : golden["tables"].GetArray()) {
    const NoiseLevels& levels = named_levels().at(table["levels"].GetString());
    const auto sigmas = numbers<float>(table["sigmas"]);
    const auto timesteps = numbers<float>(table["timesteps"]);
    const auto back = numbers<float>(table["back"]);
    for (std::size_t k = 0; k < sigmas.size(); ++k) {
      BOOST_TEST_CONTEXT(table["levels"].GetString() << " sigma " << sigmas[k]) {
        check_near(levels.timestep(sigmas[k]), timesteps[k], kFunctions);
        // tan near its pole magnifies the rounding of its argument by the result.
        const double magnified = levels.timestep(1.0f) == 0.5f ? back[k] * 2e-7 : 0.0;
        check_near(levels.sigma(timesteps[k]), back[k], kFunctions + magnified);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(percent_runs_from_above_all_levels_to_zero) {
  for (const auto& [name, levels] : named_levels()) {
    const bool flow = name.starts_with("fl");
    BOOST_TEST(levels.percent_to_sigma(0.0) == (flow ? 1.0 : 999999999.9));
    BOOST_TEST(levels.percent_to_sigma(-1.0) == levels.percent_to_sigma(0.0));
    BOOST_TEST(levels.percent_to_sigma(1.0) == 0.0);
    BOOST_TEST(levels.percent_to_sigma(0.25) > levels.percent_to_sigma(0.75));
  }
}

BOOST_AUTO_TEST_CASE(percent_follows_the_timesteps_of_each_kind) {
  const auto& all = named_levels();
  check_near(all.at("flow_3_1000").percent_to_sigma(0.5), 0.75, 1e-15);
  check_near(all.at("flux_1.15").percent_to_sigma(0.5), std::exp(1.15) / (std::exp(1.15) + 1),
             1e-15);
  const NoiseLevels& sd = all.at("sd");
  check_near(sd.percent_to_sigma(0.5), std::sqrt(double(sd.sigmas()[499]) * sd.sigmas()[500]),
             1e-6);
  check_near(all.at("edm").percent_to_sigma(0.5), std::sqrt(0.002 * 120.0), 1e-6);
}

BOOST_AUTO_TEST_CASE(timesteps_of_discrete_levels_are_clamped_to_the_table) {
  const NoiseLevels levels = NoiseLevels::discrete();
  BOOST_TEST(levels.sigma(-5.0f) == levels.sigma(0.0f));
  BOOST_TEST(levels.sigma(5000.0f) == levels.sigma(999.0f));
  BOOST_TEST(levels.timestep(0.0f) == 0.0f);
  BOOST_TEST(levels.timestep(1e9f) == 999.0f);
}

BOOST_AUTO_TEST_CASE(shift_grows_along_a_line_with_the_size_of_the_picture) {
  using heddle::samplers::flux_mu;
  using heddle::samplers::ltxv_mu;
  check_near(flux_mu(256, 256), 0.5, 1e-12);
  check_near(flux_mu(1024, 1024), 1.15, 1e-12);
  check_near(flux_mu(1024, 512), 0.5 + 0.65 * (2048 - 256) / 3840, 1e-12);
  check_near(flux_mu(512, 512, 0.2, 2.0), 0.2 + 1.8 * (1024 - 256) / 3840, 1e-12);
  check_near(ltxv_mu(1024), 0.95, 1e-12);
  check_near(ltxv_mu(4096), 2.05, 1e-12);
}

BOOST_AUTO_TEST_CASE(parameters_without_a_rising_table_are_refused_with_their_values) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  BOOST_CHECK_THROW(NoiseLevels::discrete_flow(0.0, 1000.0), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::discrete_flow(-1.0, 1000.0), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::discrete_flow(3.0, 0.0), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::flux(kNan), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::flux(100.0), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::continuous_edm(5.0, 1.0), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::continuous_v(0.0, 1.0), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::discrete({.first = 0.0}), std::invalid_argument);
  BOOST_CHECK_THROW(NoiseLevels::distilled({.steps = 100}), std::invalid_argument);
  BOOST_CHECK_EXCEPTION(NoiseLevels::discrete_flow(-2.5, 7.0), std::invalid_argument,
                        [](const auto& error) {
                          const std::string text = error.what();
                          return text.find("-2.5") != std::string::npos &&
                                 text.find("multiplier 7.0") != std::string::npos;
                        });
}
