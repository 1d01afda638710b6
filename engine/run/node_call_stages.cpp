// heddle_stages_service of a call: models that it calls in rounds, stage by stage on several
// devices.
#include <algorithm>

#include "engine/run/node_call.h"

namespace heddle::engine {

std::uint32_t NodeCall::begin_stages() {
  if (!assignment_->stages || shared_.environment.place_call) return 0;
  if (calls_ >= assignment_->calls.size()) return 0;  // none of the plan's is left
  works_in_stages_ = true;
  return assignment_->stages->ahead();
}

void NodeCall::set_written(heddle_tensor& tensor) {
  if (auto* memory = dynamic_cast<DeviceMemory*>(tensor.storage.get())) memory->set_written();
}

void NodeCall::join_stages() {
  if (!assignment_->stages) return;
  // Behind their end they are given up: what is called from now on is none of the plan's calls.
  if (!works_in_stages_) calls_ = std::max(calls_, std::uint32_t(assignment_->calls.size()));
  for (const std::uint32_t d : assignment_->stages->devices)
    shared_.environment.devices[d].state->synchronize();
}

}  // namespace heddle::engine
