// Devices that a worker works on, each opened when the first call needs it, and until the end of
// the process: the plugin and a context of its driver are in the worker as well. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/guarded.h"
#include "engine/memory/device_state.h"

namespace heddle::engine {

class WorkerDevices {
 public:
  // `description`: of describe_for_worker(). Throws what its plugin says, not_found where there is
  // no device of that identity here.
  DeviceState& open(std::string_view description);
  // Waits for all that is enqueued on any of them.
  void settle() noexcept;

 private:
  struct Opened;
  // Never freed: a plugin's threads may use them to the very end.
  Guarded<std::map<std::string, Opened*, std::less<>>> opened_;
};

}  // namespace heddle::engine
