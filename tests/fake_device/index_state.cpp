#include "index_state.h"

#include <algorithm>
#include <array>
#include <utility>

#include "heddle/testing/fake_control.h"

namespace heddle::fake {

namespace {

std::array<IndexState, HEDDLE_FAKE_MOST>& states() {
  static std::array<IndexState, HEDDLE_FAKE_MOST> all;
  return all;
}

}  // namespace

void IndexState::count_launch(const std::string& op) {
  const std::lock_guard lock(mutex_);
  ++launches_[op];
}

void IndexState::set_launch_call(std::uint64_t nth, void (*call)(void*), void* user) {
  const std::lock_guard lock(mutex_);
  launch_call_ = nth == 0 ? nullptr : call;
  launches_before_call_ = nth;
  launch_user_ = user;
}

void IndexState::launch_begins() {
  void (*call)(void*) = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (launch_call_ == nullptr || --launches_before_call_ > 0) return;
    call = std::exchange(launch_call_, nullptr);
    user = launch_user_;
  }
  call(user);
}

void IndexState::set_weight_call(std::uint64_t nth, void (*call)(void*), void* user) {
  const std::lock_guard lock(mutex_);
  weight_call_ = nth == 0 ? nullptr : call;
  weights_before_call_ = nth == 0 ? 0 : nth - 1;
  weight_user_ = user;
}

void IndexState::weight_is_asked_for() {
  void (*call)(void*) = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (weight_call_ == nullptr) return;
    if (weights_before_call_ > 0) {
      --weights_before_call_;
      return;
    }
    call = weight_call_;
    user = weight_user_;
  }
  call(user);
}

std::uint64_t IndexState::launches(const char* op) {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  for (const auto& [name, launches] : launches_)
    if (op == nullptr || name == op) count += launches;
  return count;
}

namespace {

void raise(std::atomic<std::uint64_t>& peak, std::uint64_t bytes) {
  std::uint64_t known = peak.load();
  while (known < bytes && !peak.compare_exchange_weak(known, bytes)) {
  }
}

}  // namespace

void IndexState::raise_peak(std::uint64_t bytes) { raise(peak_bytes, bytes); }
void IndexState::raise_pinned_peak(std::uint64_t bytes) { raise(pinned_peak_bytes, bytes); }

void IndexState::reset() {
  for (auto* counter : {&copies, &weights, &allocations, &peak_bytes, &freed_in_use, &foreign_bytes,
                        &pinned_peak_bytes, &pinned_allocations, &replays, &launches_run,
                        &questions, &contexts_made})
    counter->store(0);
  for (Fault* fault :
       {&alloc_fault, &copy_fault, &launch_fault, &weight_fault, &refusal, &pinned_fault})
    fault->reset();
  const std::lock_guard lock(mutex_);
  launch_call_ = weight_call_ = nullptr;
  launches_.clear();
}

IndexState& index_state(std::uint32_t index) {
  return states()[std::min<std::size_t>(index, HEDDLE_FAKE_MOST - 1)];
}

void reset_all_states() {
  for (IndexState& state : states()) state.reset();
}

Clock& the_clock() {
  static Clock clock;
  return clock;
}

}  // namespace heddle::fake
