// The model of layers_model.h on devices that take its weights from host memory with limits.
#pragma once

#include "tests/support/layers_model.h"

namespace heddle::test {

struct LayersOnHost {
  LayersModel layers;
  std::shared_ptr<engine::HostBudget> budget;
  engine::HostWeights host;

  LayersOnHost(const std::vector<std::string>& devices, int width, int depth, std::uint64_t limit,
               engine::HostWeights::Options options, const std::string& fakes = "{}")
      : layers(devices, fakes, width, depth),
        budget(std::make_shared<engine::HostBudget>(limit)),
        host(budget, options) {
    for (std::uint32_t d = 0; d < devices.size(); ++d) layers.state(d).use_host_weights(&host);
  }
  ~LayersOnHost() {
    for (const engine::RunDevice& device : layers.runs.environment().devices) {
      device.state->release_all();
      device.weights->drop_all();
      device.state->use_host_weights(nullptr);
    }
  }
};

}  // namespace heddle::test
