// From a call and the devices that it is placed on to what plan_session() plans: the one way, for
// plans that are printed, for what a call needs at least, and for sessions at work. They differ in
// what a device may use, and in who says how a device lays out a weight.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/memory/weight_source.h"
#include "engine/program/session_plan.h"

namespace heddle::engine {

// A device that takes part, as SessionSpec::DeviceSlot has it.
struct SessionDevice {
  std::string name;
  heddle_dtype compute = HEDDLE_F32;
  bool host_visible = false;  // all such devices share their memory
  std::uint64_t budget = kNoLimit;
  DeviceRates rates;
  bool captures_other_streams = false;
};

// How a device lays out a weight, and the bytes of it. `device`: of SessionSetup::devices.
using WeightForms =
    std::function<heddle_weight_layout(std::uint32_t device, const WeightSource& source)>;

struct SessionSetup {
  const CallSpec& call;
  CallPlacement placement;
  std::uint32_t home = 0;  // of `devices`: the caller's
  // Those of the placement, in its order, then home when it is none of them.
  std::vector<SessionDevice> devices = {};
  // Asked of two of them; empty: none are.
  std::function<bool(std::uint32_t, std::uint32_t)> are_peers = {};
  std::vector<Donor> donors = {};
  std::uint64_t pinned_bytes = 0;  // as in SessionSpec
  WeightForms layout = {};
};

// What it gives holds the call's model and the setup's functions, not the call.
SessionSpec session_spec(SessionSetup setup);

// The devices of a session: those of the placement, then home when it is none of them.
std::vector<std::uint32_t> session_devices(const CallPlacement& placement, std::uint32_t home);

// In the type that a device computes with, row-major; what stays small is as it is in the file.
heddle_weight_layout plain_layout(const WeightSource& source, heddle_dtype compute);

// Says of the first `count` device slots, those of the placement, which are peers: groups whose
// ranks exchange what they compute, where every two of a group are.
void mark_peers(SessionSpec& spec, std::size_t count,
                const std::function<bool(std::uint32_t, std::uint32_t)>& are_peers);

}  // namespace heddle::engine
