#include "engine/run/output_sequencer.h"

#include <utility>

namespace heddle::engine {

void OutputSequencer::follow(OutputSequencer& before,
                             const std::shared_ptr<OutputSequencer>& next) {
  const std::lock_guard lock(before.mutex_);
  if (before.has_come_ && before.is_over_) return;
  next->has_come_ = false;
  next->control_->hold_writing();
  before.followers_.push_back(next);
}

void OutputSequencer::end() {
  Followers followers;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    control_ = nullptr;
    if (has_come_) followers.swap(followers_);
  }
  pass(std::move(followers));
}

OutputSequencer::Followers OutputSequencer::come() {
  const std::lock_guard lock(mutex_);
  has_come_ = true;
  if (control_ != nullptr) control_->allow_writing();
  return is_over_ ? std::exchange(followers_, {}) : Followers();
}

// One after another and not each by the one before it: a long row of runs may be over already.
void OutputSequencer::pass(Followers followers) {
  while (!followers.empty()) {
    const std::shared_ptr<OutputSequencer> next = std::move(followers.back());
    followers.pop_back();
    Followers more = next->come();
    followers.splice(followers.end(), more);  // takes no memory: a run that ends has nobody to tell
  }
}

}  // namespace heddle::engine
