#include "engine/resources/run_work.h"

#include <algorithm>

namespace heddle::engine {

void RunWork::renew(CancelFlagRef& flag, NodeIndex node) {
  if (flag != nullptr && !flag->is_held()) return;
  CancelFlagRef made = CancelFlag::make();
  const std::lock_guard lock(mutex_);
  if (state_ == State::given_up) made->set();
  parts_.push_back({node, made});
  mark_.store(parts_.size(), std::memory_order_release);
  flag = std::move(made);
}

bool RunWork::hold(std::uint64_t mark) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::open) return state_ == State::over;
  for (; held_until_ < mark; ++held_until_) parts_[held_until_].flag->hold();
  return true;
}

void RunWork::give_up() noexcept {
  const std::lock_guard lock(mutex_);
  if (state_ != State::open) return;
  state_ = State::given_up;
  for (std::size_t i = parts_.size(); i-- > held_until_;) parts_[i].flag->set();
}

bool RunWork::finish() {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(parts_, [](const Part& part) { return part.flag->was_obeyed(); }))
    return false;
  state_ = State::over;
  parts_.clear();
  return true;
}

std::vector<NodeIndex> RunWork::lost() const {
  std::vector<NodeIndex> nodes;
  const std::lock_guard lock(mutex_);
  for (const Part& part : parts_)
    if (part.flag->was_obeyed()) nodes.push_back(part.node);
  return nodes;
}

void RunWork::forget() {
  const std::lock_guard lock(mutex_);
  state_ = State::over;
  parts_.clear();
}

}  // namespace heddle::engine
