// What a run does before it begins: it waits for its turn at the memory that it needs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/resources/admission.h"
#include "engine/run/control.h"
#include "engine/run/observer.h"

namespace heddle::engine {

struct MemoryWait {
  // Seconds to wait for memory that other programs hold; then the run begins with what there is.
  double limit_seconds = 0;
  std::function<double()> now;                        // monotonic seconds
  std::function<std::string(std::uint32_t)> name_of;  // of a memory: "cuda:0"
  // Places the run anew on the devices as they are now, and gives the ticket its needs. False: it
  // has been admitted as it was. `by_budget`: as if other programs held nothing.
  std::function<bool(bool by_budget)> place_again;
};

// Comes back when the run has been admitted. Tells the observer what it waits for, each time that
// this is something else. Throws cancelled, and what placing throws.
void wait_for_memory(const Admission::Ticket& ticket, RunControl& control, Observer& observer,
                     const MemoryWait& wait);

// "45.0 MiB on cpu:0: 10.0 MiB of 100.0 MiB are free, run 3 holds 45.0 MiB"
std::string describe(const AdmissionQueue::Lack& lack,
                     const std::function<std::string(std::uint32_t)>& name_of);

}  // namespace heddle::engine
