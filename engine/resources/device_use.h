// The devices that one run gives work to: what it waits for in the end, whom it tells of a failure,
// and which device is to blame.
//
// The streams of a device are shared by all runs, and tell a failure once, to whoever waits first:
// perhaps to another run, which may be gone by now. So a run that used a device on which any wait
// has failed meanwhile does not end well, whoever waited.
//
// mark() and touch() are for any thread; mark() costs one load when the node is the same as last
// time. Everything else is for the thread that ends the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

class DeviceUse {
 public:
  // It has to outlive this object. To be made before the run looks into the cache.
  explicit DeviceUse(Environment& environment);
  ~DeviceUse();
  DeviceUse(const DeviceUse&) = delete;

  // This node is about to enqueue something there; it stays where it is as long as this object.
  void mark(std::uint32_t device, const Node& node) {
    Use& use = uses_[device];
    const Node* const last = use.last.load(std::memory_order_relaxed);
    if (last == &node) return;
    if (last == nullptr)
      begin(device);
    else
      use.several.store(true, std::memory_order_relaxed);
    use.last.store(&node, std::memory_order_relaxed);
  }
  void mark(const DeviceState& device, const Node& node);
  // Something goes there, or what lies there is read. What lies there is not this run's work: it
  // may have been lost at any time since the run began.
  void touch(std::uint32_t device) {
    hold(device);
    uses_[device].failed_waits.store(failed_before_[device], std::memory_order_relaxed);
  }
  void touch_holders(const Value& value);  // of its tensors

  bool has(std::uint32_t device) const {
    return uses_[device].failed_waits.load(std::memory_order_relaxed) != kNotUsed;
  }
  // How many waits of the device had failed when the run began. Part of the keys of the cache: what
  // was made before a failure is not found after it.
  std::uint64_t failed_before(std::uint32_t device) const { return failed_before_[device]; }

  // Waits for all of them. Throws what failed, with the device and what is known of the node.
  void wait() const;

  // The run has ended well: so have its devices.
  void succeeded() const;

  // The run has failed, and nothing of it is running any more. Counts it against the devices that
  // are to blame, if any, and drops what they hold: a device may have lost it. By device: whether
  // work of this run there may have been lost, so that what it made is not to be trusted.
  std::vector<bool> failed() const;

 private:
  static constexpr std::uint64_t kNotUsed = ~std::uint64_t{0};
  struct Use {
    std::atomic<const Node*> last{nullptr};
    std::atomic<bool> several{false};                   // nodes
    std::atomic<std::uint64_t> failed_waits{kNotUsed};  // of the device, when the run came to it
    std::atomic<bool> is_held{false};
  };
  const Device& device(std::size_t d) const { return environment_.devices[d].state->device(); }
  void begin(std::uint32_t device);
  void hold(std::uint32_t device) {
    if (!uses_[device].is_held.load(std::memory_order_relaxed) &&
        !uses_[device].is_held.exchange(true))
      environment_.device_service.hold(device);
  }
  bool has_lost_work(std::size_t device) const;
  std::string where(std::size_t device) const;

  Environment& environment_;
  std::vector<Use> uses_;                     // by device
  std::vector<std::uint64_t> failed_before_;  // by device
};

}  // namespace heddle::engine
