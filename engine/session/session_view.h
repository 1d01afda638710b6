// What a session at work is made of, before anything is set up: what it was opened for, the devices
// that it uses, and its plan. Shared by those that set it up and that run it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/cancel_flag.h"
#include "engine/graph/model.h"
#include "engine/memory/weights.h"
#include "engine/program/session_plan.h"
#include "engine/resources/timeline.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

struct SessionDeviceSlot {
  DeviceState* state = nullptr;
  WeightStore* weights = nullptr;
  std::uint64_t budget = kNoLimit;  // bytes that the session may use there
  DeviceRates rates = {};
  std::uint64_t spare = 0;  // bytes beyond the budget, where it cannot do without: weights are then
                            // read one at a time
  // What the budget would be now, where it may change while the session is open; with what the
  // session holds counted as taken. The session's thread; asks the driver where it is time to.
  std::function<std::uint64_t()> budget_now = {};
};

// A device that takes no part, as a source of streamed weights.
struct SessionDonor {
  Donor offer;
  WeightStore* weights = nullptr;
};

struct SessionDeviceSlots {
  std::vector<SessionDeviceSlot> device_slots;  // the placement's devices in its order, then home
                                                // when it is none of them
  std::uint32_t home = 0;                       // of the caller
  CallPlacement placement;                      // its devices are the first device slots
  std::vector<SessionDonor> donors = {};
  std::shared_ptr<Ledger> host_memory = nullptr;  // nullptr: it has no budget
  std::uint64_t pinned_bytes = 0;                 // as in SessionSpec
  bool is_stage = false;  // called from its one device, where what it gives stays
};

// What a session was opened for, and whom it asks and tells while it works.
struct SessionContext {
  SessionRequest request;
  std::shared_ptr<const Model> model;
  std::function<bool()> cancelled;  // asked between blocks
  Timeline* timeline = nullptr;     // notified of blocks, transfers and weights; nullptr: nobody is
  std::function<CancelFlag*()> cancel = {};  // for every launch; may be empty, and give nullptr

  CancelFlag* cancel_flag() const { return cancel ? cancel() : nullptr; }
};

// Borrows all of it.
struct SessionView {
  const SessionContext& context;
  const SessionDeviceSlots& device_slots;
  const SessionPlan& plan;

  const Graph& graph() const { return *context.model->graph; }
  std::uint32_t device_slot_count() const {
    return std::uint32_t(device_slots.device_slots.size());
  }
  DeviceState& state(std::uint32_t device_slot) const {
    return *device_slots.device_slots[device_slot].state;
  }
  DeviceState& home() const { return state(device_slots.home); }
  // What fills a storage that is a weight or a page.
  WeightSource weight_source(const SessionStorage& storage) const;
  // Empty without a timeline.
  WorkWatch weight_watch(const SessionStorage& storage) const;
  WorkWatch transfer_watch(const PlannedTransfer& transfer) const;
};

}  // namespace heddle::engine
