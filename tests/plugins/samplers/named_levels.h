// The noise levels that the golden files call by name.
#pragma once

#include <map>
#include <string>

#include "plugins/samplers/noise_levels.h"

namespace heddle::samplers::testing {

inline const std::map<std::string, NoiseLevels>& named_levels() {
  static const std::map<std::string, NoiseLevels> levels = {
      {"sd", NoiseLevels::discrete()},
      {"zsnr", NoiseLevels::discrete({.terminal = Betas::Terminal::kZeroSnr})},
      {"lcm", NoiseLevels::distilled()},
      {"flow_1_1", NoiseLevels::discrete_flow(1.0, 1.0)},
      {"flow_3_1000", NoiseLevels::discrete_flow(3.0, 1000.0)},
      {"flow_3_1", NoiseLevels::discrete_flow(3.0, 1.0)},
      {"flow_3.1_1", NoiseLevels::discrete_flow(3.1, 1.0)},
      {"flow_8_1000", NoiseLevels::discrete_flow(8.0, 1000.0)},
      {"flux_1.15", NoiseLevels::flux(1.15)},
      {"flux_0.63", NoiseLevels::flux(0.63)},
      {"edm", NoiseLevels::continuous_edm(0.002, 120.0)},
      {"v", NoiseLevels::continuous_v(0.03, 500.0)},
  };
  return levels;
}

}  // namespace heddle::samplers::testing
