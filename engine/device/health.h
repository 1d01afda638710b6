// Whether a device may be given work. A device that fails in several runs one after another is
// degraded: placement leaves it out until a while has passed and a probe of it has gone well.
//
// Runs are counted, not calls: one hiccup makes many calls fail, all that is enqueued behind it and
// every wait of every thread, down to those of cleaning up, so three calls are most often one
// failure. A run is also what people try again, and what a success is measured by: a device that
// brings a run to its end is well, however many calls that took.
//
// Knows no device and asks none: who runs something tells it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/guarded.h"

namespace heddle::engine {

struct HealthPolicy {
  std::uint32_t failures = 3;   // runs in a row, until the device is degraded; 0: it never is
  double seconds = 60;          // from then, and from a probe that failed, to the next probe
  std::function<double()> now;  // monotonic seconds, any thread; empty: the system's clock
};

class DeviceHealth {
 public:
  enum class State { healthy, degraded, probing };
  struct Report {
    State state = State::healthy;
    std::uint32_t failures = 0;   // runs in a row; a failed probe counts like one
    std::string cause;            // of the last failure; empty: none since the device was well
    double probe_in_seconds = 0;  // degraded: when the next run probes it; 0: at once
  };

  explicit DeviceHealth(HealthPolicy policy = {});

  void run_succeeded();
  // True: the device is degraded from now on, and was not before.
  bool run_failed(const std::string& cause);

  // True: the device is degraded, its time has come, and the caller probes it and tells the outcome
  // with end_probe(). Nobody else is told so meanwhile.
  bool begin_probe();
  void end_probe(const std::string& failure);  // empty: it went well

  Report report() const;
  // Since it was opened: never goes back.
  std::uint64_t failed_runs() const { return failed_runs_.load(std::memory_order_acquire); }

 private:
  struct Standing {
    State state = State::healthy;
    std::uint32_t failures = 0;
    std::string cause;
    double probe_at = 0;  // by policy_.now
  };

  const HealthPolicy policy_;
  Guarded<Standing> standing_;
  std::atomic<std::uint64_t> failed_runs_{0};
};

std::string_view state_name(DeviceHealth::State state);  // "healthy", "degraded", "probing"

// Why a device is left out: "it failed in 3 runs one after another, the last time with ...; it is
// probed again in 42 s". Empty: it is not.
std::string reason_to_leave_out(const DeviceHealth::Report& report);

}  // namespace heddle::engine
