// The model of layers_model.h on devices that take its weights from host memory with limits.
#pragma once

#include "tests/support/layers_model.h"

namespace heddle::test {

struct LayersOnHost {
  LayersModel layers;
  std::shared_ptr<core::HostRoom> room;
  core::HostWeights host;

  LayersOnHost(const std::vector<std::string>& devices, int width, int depth, std::uint64_t limit,
               core::HostWeights::Options options, const std::string& fakes = "{}")
      : layers(devices, fakes, width, depth),
        room(std::make_shared<core::HostRoom>(limit)),
        host(room, options) {
    for (std::uint32_t d = 0; d < devices.size(); ++d) layers.state(d).use_host_weights(&host);
  }
  ~LayersOnHost() {
    for (const core::RunDevice& device : layers.runs.environment().devices) {
      device.state->let_go();
      device.weights->drop_all();
      device.state->use_host_weights(nullptr);
    }
  }
};

}  // namespace heddle::test
