#include "engine/session/session_planning.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/session_spec.h"

namespace heddle::engine {

namespace {

SessionPlan plan_within_budgets(const SessionDeviceSlots& device_slots, const CallSpec& call) {
  const auto device = [&](std::uint32_t device_slot) -> const Device& {
    return device_slots.device_slots[device_slot].state->device();
  };
  SessionSetup setup{call, device_slots.placement};
  setup.home = device_slots.home;
  for (std::uint32_t p = 0; p < device_slots.device_slots.size(); ++p)
    setup.devices.push_back({device(p).name(), device(p).compute(), device(p).host_visible(),
                             device_slots.device_slots[p].budget,
                             device_slots.device_slots[p].rates,
                             device(p).captures_other_streams()});
  setup.are_peers = [&](std::uint32_t a, std::uint32_t b) {
    return device(a).link(&device(b)).kind == HEDDLE_LINK_PEER;
  };
  for (const SessionDonor& donor : device_slots.donors) setup.donors.push_back(donor.offer);
  setup.pinned_bytes = device_slots.pinned_bytes;
  setup.layout = [&](std::uint32_t device_slot, const WeightSource& source) {
    return device_slots.device_slots[device_slot].weights->layout(source);
  };
  const SessionSpec spec = session_spec(std::move(setup));
  const Graph& graph = *get_model(*call.model)->graph;
  return plan_session(graph, spec, [&](std::uint32_t device_slot, const heddle_op_call& op) {
    const heddle_kernel& kernel =
        device_slots.device_slots[device_slot].state->kernels().choose(device(device_slot), op);
    return ChosenKernel{&kernel, kernel.workspace == nullptr
                                     ? 0
                                     : kernel.workspace(device(device_slot).raw(), &op)};
  });
}

SessionPlan plan_with_spare(SessionDeviceSlots& device_slots, const CallSpec& call) {
  try {
    return plan_within_budgets(device_slots, call);
  } catch (const Error& error) {
    const bool has_spare = std::ranges::any_of(
        device_slots.device_slots,
        [](const SessionDeviceSlot& device_slot) { return device_slot.spare > 0; });
    if (error.code() != Code::out_of_memory || !has_spare) throw;
  }
  for (SessionDeviceSlot& device_slot : device_slots.device_slots)
    device_slot.budget += std::exchange(device_slot.spare, 0);
  return plan_within_budgets(device_slots, call);
}

}  // namespace

SessionPlan plan_at(SessionDeviceSlots& device_slots, const CallSpec& call) {
  try {
    return plan_with_spare(device_slots, call);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    // The plan knows what it lacks, the ledgers who has it.
    std::string text = error.what();
    for (const SessionDeviceSlot& device_slot : device_slots.device_slots)
      if (device_slot.budget != kNoLimit)
        text += cat(" ", device_slot.state->device().name(), " has a ",
                    device_slot.state->ledger().figures(), ".");
    throw Error(Code::out_of_memory, text);
  }
}

}  // namespace heddle::engine
