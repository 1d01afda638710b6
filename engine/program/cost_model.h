// The cost model: what an op takes on a device, and a copy on its way. Placement, estimates, list
// scheduling and paging all ask it, so they agree on what is faster.
//
//   op     launch + max(FLOPs / rate of its kind, bytes / rate of the device's memory)
//   copy   latency + bytes / rate of the link
//
// The rates come from place/costs.h. What a whole call takes is simulated from them: a node on its
// devices (place/list_schedule.h), a placed call (place/estimate.h), streamed weights (paging.h).
// Values; pure.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/program/op_work.h"

namespace heddle::engine {

// One direction of a link.
struct CopyRate {
  double bytes_per_second = 0, latency_seconds = 0;  // 0 bytes: there is no such way

  bool is_there() const { return bytes_per_second > 0; }
  bool is_free() const { return bytes_per_second == std::numeric_limits<double>::infinity(); }
  // When a copy is done that begins at `begin` seconds.
  double end(double begin, std::uint64_t bytes) const {
    return begin + latency_seconds + double(bytes) / bytes_per_second;
  }
  double seconds(std::uint64_t bytes) const { return end(0, bytes); }

  bool operator==(const CopyRate&) const = default;
};
// Of memory that both ends share.
inline constexpr CopyRate kNothingToCopy{std::numeric_limits<double>::infinity(), 0};

struct DeviceRates {
  double flops_per_second = 1e12;  // of GEMMs, and of what has no rate of its own
  double bytes_per_second = 1e12;  // of its own memory, read and written together
  double launch_seconds = 1e-6;    // of one op, however small
  double attention_flops_per_second = 0, fp8_flops_per_second = 0;  // 0: as GEMMs
  double int8_flops_per_second = 0;                                 // 0: as GEMMs
  double rest_gain = 0;  // by how much more it computes in a second when it rests half of the time
  CopyRate from_host{1e10, 1e-5};  // of weights, from host memory as it comes
  CopyRate from_pinned{};          // from pinned memory; not there: nothing is pinned for it

  // Of one op, launch included. `busy`, from 0 to 1: of the time around it the device works so
  // much. At less than all, arithmetic is faster where power limits it: from half of the time on as
  // measured, between as on a line.
  double seconds(const OpWork& op, double busy = 1) const {
    return computing_seconds(op, busy) + launch_seconds;
  }
  double computing_seconds(const OpWork& op, double busy = 1) const;
};

}  // namespace heddle::engine
