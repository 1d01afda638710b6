#include "index_state.h"

#include <algorithm>
#include <array>

#include "fake_control.h"

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
                        &pinned_peak_bytes, &pinned_allocations, &replays})
    counter->store(0);
  for (Fault* fault :
       {&alloc_fault, &copy_fault, &launch_fault, &weight_fault, &refusal, &pinned_fault})
    fault->reset();
  const std::lock_guard lock(mutex_);
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
