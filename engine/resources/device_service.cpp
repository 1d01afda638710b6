#include "engine/resources/device_service.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

DeviceService::State DeviceService::state(std::uint32_t device) const {
  const std::lock_guard lock(mutex_);
  return device < devices_.size() ? devices_[device].state : State::enabled;
}

void DeviceService::set(std::uint32_t device, State state) {
  const std::lock_guard lock(mutex_);
  devices_[device].state = state;
  changed_.notify_all();
}

void DeviceService::enable(std::uint32_t device) { set(device, State::enabled); }

void DeviceService::disable(std::uint32_t device) {
  const std::lock_guard lock(mutex_);
  State& state = devices_[device].state;
  if (state == State::enabled) state = State::disabled;
}

void DeviceService::drain(std::uint32_t device) {
  {
    const std::lock_guard lock(mutex_);
    State& state = devices_[device].state;
    if (state != State::drained) state = State::draining;
  }
  const std::lock_guard lock(holders_mutex_);
  for (const Holder& holder : holders_)
    if (holder.on_drain && std::ranges::count(holder.devices, device) > 0) holder.on_drain();
}

// Its last call of on_drain is over when this comes back.
void DeviceService::let_go(Holders::iterator holder, bool is_counted) {
  Holders gone;
  {
    const std::lock_guard lock(holders_mutex_);
    gone.splice(gone.end(), holders_, holder);
  }
  if (!is_counted) return;
  for (const std::uint32_t d : holder->devices) release(d);
}

// It can be told before it holds anything: a drain that begins in between either finds it among the
// holders, or is found here.
std::optional<DeviceService::Hold> DeviceService::try_hold(std::span<const std::uint32_t> devices,
                                                           OnDrain on_drain) {
  Holders one;
  one.push_back({{devices.begin(), devices.end()}, std::move(on_drain)});
  const auto holder = one.begin();
  {
    const std::lock_guard lock(holders_mutex_);
    holders_.splice(holders_.end(), one);
  }
  if (!count(holder->devices)) {
    let_go(holder, false);
    return {};
  }
  return Hold(*this, holder);
}

// False, and nothing is counted: one of them is not enabled.
bool DeviceService::count(std::span<const std::uint32_t> held) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {  // one that was enabled again in the middle of it
    return std::ranges::none_of(held, [&](auto d) { return devices_[d].is_giving_back; });
  });
  if (std::ranges::any_of(held, [&](auto d) { return devices_[d].state != State::enabled; }))
    return false;
  for (const std::uint32_t d : held) ++devices_[d].holds;
  return true;
}

// Does not wait for a device that is just giving back: who comes here may have locks, and what is
// read there is memory in use, which keeps it from going.
void DeviceService::hold(std::uint32_t device) {
  const std::lock_guard lock(mutex_);
  if (device < devices_.size()) ++devices_[device].holds;
}

void DeviceService::release(std::uint32_t device) {
  const std::lock_guard lock(mutex_);
  if (device < devices_.size()) --devices_[device].holds;
}

void DeviceService::finish_drains(const std::function<bool(std::uint32_t)>& give_back) {
  std::unique_lock lock(mutex_);
  for (std::uint32_t d = 0; d < devices_.size(); ++d) {
    One& one = devices_[d];
    if (one.state != State::draining || one.holds > 0 || one.is_giving_back) continue;
    one.is_giving_back = true;
    lock.unlock();
    const bool is_done = give_back(d);
    lock.lock();
    one.is_giving_back = false;
    if (is_done && one.state == State::draining && one.holds == 0) one.state = State::drained;
    changed_.notify_all();
  }
}

bool DeviceService::wait_drained(std::span<const std::uint32_t> devices,
                                 std::optional<std::chrono::milliseconds> time) {
  std::unique_lock lock(mutex_);
  const auto is_done = [&] {
    return std::ranges::none_of(devices,
                                [&](auto d) { return devices_[d].state == State::draining; });
  };
  if (time) return changed_.wait_for(lock, *time, is_done);
  changed_.wait(lock, is_done);
  return true;
}

std::string_view state_name(DeviceService::State state) {
  switch (state) {
    case DeviceService::State::enabled:
      return "enabled";
    case DeviceService::State::disabled:
      return "disabled";
    case DeviceService::State::draining:
      return "draining";
    case DeviceService::State::drained:
      return "drained";
  }
  return "unknown state";
}

std::string_view reason_to_leave_out(DeviceService::State state) {
  switch (state) {
    case DeviceService::State::enabled:
      return "";
    case DeviceService::State::disabled:
      return "it is disabled";
    case DeviceService::State::draining:
      return "it is being drained";
    case DeviceService::State::drained:
      return "it is drained";
  }
  return "";
}

}  // namespace heddle::engine
