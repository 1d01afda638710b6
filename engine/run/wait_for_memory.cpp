#include "engine/run/wait_for_memory.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// Nobody says when another program gives memory back, so it is looked for. Runs that leave wake
// those that wait for them.
constexpr std::chrono::milliseconds kLookForForeign{100}, kLookAgain{1000};

}  // namespace

std::string describe(const AdmissionQueue::Lack& lack,
                     const std::function<std::string(std::uint32_t)>& name_of) {
  std::string text = cat(format_bytes(lack.wanted), " on ", name_of(lack.memory));
  if (lack.ahead != 0)
    return text + cat(", behind run ", lack.ahead, ", which has been passed ",
                      AdmissionQueue::kMostPassed, " times");
  std::string kept;
  for (const auto& [model, bytes] : lack.kept)
    kept += cat(", ", model, " is pinned there and takes ", format_bytes(bytes));
  if (lack.holders.empty())
    return text + cat(", of which other programs leave ", format_bytes(lack.capacity), kept);
  text += cat(": ", format_bytes(lack.capacity - std::min(lack.capacity, lack.taken)), " of ",
              format_bytes(lack.capacity), " are free");
  for (const auto& [run, bytes] : lack.holders)
    text += cat(", run ", run, " holds ", format_bytes(std::min(bytes, lack.capacity)));
  return text + kept;
}

void wait_for_memory(const Admission::Ticket& ticket, RunControl& control, Observer& observer,
                     const MemoryWait& wait) {
  std::string reported;
  bool waits_for_foreign = false;
  double foreign_since = 0;
  bool is_paused = false;
  for (;;) {
    const std::uint64_t seen = control.wake_up()->count();
    if (ticket.is_admitted()) return;
    if (control.cancelled()) throw Error(Code::cancelled, "cancelled");
    if (control.paused() != is_paused) {
      is_paused = !is_paused;
      ticket.set_paused(is_paused);
      continue;
    }
    if (ticket.take_idle_device()) {
      try {
        wait.place_again(wait.limit_seconds > 0);
      } catch (const Error&) {
        // It stays where it was placed.
      }
      continue;
    }
    if (const auto lack = ticket.lack()) {
      const std::string text = describe(*lack, wait.name_of);
      if (text != reported) observer.run_waiting(wait.name_of(lack->memory), lack->wanted, text);
      reported = text;
      if (!lack->holders.empty() || lack->ahead != 0) {
        waits_for_foreign = false;
      } else if (!std::exchange(waits_for_foreign, true)) {
        foreign_since = wait.now();
      }
      if (waits_for_foreign && wait.now() - foreign_since >= wait.limit_seconds) {
        // A session streams what has no room, and says what lacks where that will not do.
        if (wait.place_again(false)) ticket.begin_anyway();
        return;
      }
    }
    control.wake_up()->wait_beyond(seen, waits_for_foreign ? kLookForForeign : kLookAgain);
    ticket.retry();
  }
}

}  // namespace heddle::engine
