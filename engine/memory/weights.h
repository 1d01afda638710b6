// The weights of models in the form that a device computes with. Made from the file's bytes, always by the same function
// of the device; shared by all sessions that use the same weight; dropped least recently used first when they
// exceed their share of the device. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/memory/device_state.h"
#include "engine/memory/watch.h"
#include "engine/memory/weight_source.h"

namespace heddle::core {

struct DeviceWeight {
  heddle_weight_form form{};
  std::shared_ptr<DeviceMemory> memory;
  bool is_lost = false;  // the store's: it could not be made, whoever holds it
};

class WeightStore {
 public:
  // `limit_bytes`: weights that no session uses are dropped when all together exceed it.
  WeightStore(DeviceState& state, std::uint64_t limit_bytes) : state_(state), limit_bytes_(limit_bytes) {}

  heddle_weight_form form(const WeightSource& source) const { return state_.device().weight_form(source.use, source.info()); }

  bool has(const WeightSource& source, Hash128 checkpoint) const;
  // The weight, made now if it is not here. The work is enqueued, by this caller or by another one just now: nothing computes with
  // it before finish() has been told of it. `checkpoint` is the identity of the checkpoint that the parts belong to, and stays
  // open as long as the caller holds it. The watch is told when it is made.
  std::shared_ptr<const DeviceWeight> get(const WeightSource& source, Hash128 checkpoint, const WorkWatch& watch = {});
  // Waits for everything enqueued so far. Throws what failed, and when one of `wanted`, which get() gave, could not be made: also
  // when somebody else was told the reason, because a device's streams are shared and tell a failure once. What could not be
  // made is no longer here.
  void finish(std::span<const std::shared_ptr<const DeviceWeight>> wanted = {});

  std::uint64_t bytes() const;
  void drop_unused();
  // Forgets all weights: the device has failed, and may hold something else by now. Sessions keep what they have.
  void drop_all();

 private:
  struct Entry {
    std::shared_ptr<DeviceWeight> weight;
    std::uint64_t last_use = 0;
  };
  struct State {
    std::map<Hash128, Entry> entries;
    std::uint64_t bytes = 0, clock = 0;
    std::vector<std::shared_ptr<const void>> keep;           // what else it reads, until then
    // Enqueued, and not waited for with success yet; and how many waits had failed on the device when the first of them was.
    std::vector<std::pair<Hash128, std::weak_ptr<DeviceWeight>>> unproven;
    std::uint64_t failures_before = 0;
  };
  void evict(State& state, std::uint64_t wanted) const;
  void prove(State& state) const;
  static void lose_unproven(State& state);

  DeviceState& state_;
  const std::uint64_t limit_bytes_;
  Guarded<State> entries_;
};

}  // namespace heddle::core
