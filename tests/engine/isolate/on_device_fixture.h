// Isolated nodes on fake devices, whose memory both processes map.
#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/isolate/isolated_fixture.h"
#include "tests/fake_device/fake_fixture.h"

namespace heddle::test {

inline EngineOptions on_fake(bool isolated, const std::string& options = "{}",
                             std::vector<std::string> devices = {"fake:0"}) {
  EngineOptions result = fake_engine_options(std::move(devices), options);
  result.plugin_dirs.push_back(HEDDLE_SAMPLE_PLUGINS_DIR "/isolated");
  if (isolated) result.isolation.plugins = {"sample_on_device"};
  return result;
}

// Of devices' memory that is shared, in this process.
inline std::size_t fake_mappings() {
  std::ifstream file("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);)
    count += line.find("/memfd:fake device") != std::string::npos ? 1 : 0;
  return count;
}

}  // namespace heddle::test
