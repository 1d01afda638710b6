#include "control.h"

#include <algorithm>

#include "device.h"
#include "index_state.h"

namespace heddle::fake {

namespace {

OpenDevices& devices() { return OpenDevices::instance(); }

double now(std::uint32_t index) {
  double latest = 0;
  devices().each(index, [&](Device& device) { latest = std::max(latest, device.now()); });
  return latest;
}

std::uint64_t used_bytes(std::uint32_t index) {
  std::uint64_t bytes = 0;
  devices().each(index, [&](Device& device) { bytes += device.memory().use().used; });
  return bytes;
}

std::uint64_t pinned_bytes(std::uint32_t index) {
  std::uint64_t bytes = 0;
  devices().each(index, [&](Device& device) { bytes += device.pinned_bytes(); });
  return bytes;
}

std::uint64_t contexts(std::uint32_t index) {
  std::uint64_t count = 0;
  devices().each(index, [&](Device& device) { count += device.context().is_made() ? 1 : 0; });
  return count;
}

std::uint64_t handles(std::uint32_t index) {
  std::uint64_t count = 0;
  devices().each(index, [&](Device& device) { count += device.context().handles(); });
  return count;
}

void reset() {
  keep_other_streams(false);
  reset_all_states();
  the_clock().reset();
}

void set_link(std::uint32_t index, std::uint32_t from, std::uint32_t to, double bytes_per_second,
              double latency_seconds) {
  devices().each(index, [&](Device& device) {
    device.set_link({from, to}, {bytes_per_second, latency_seconds});
  });
}

void set_op_seconds(std::uint32_t index, const char* op, double seconds) {
  devices().each(index, [&](Device& device) { device.set_op_seconds(op, seconds); });
}

}  // namespace

constexpr heddle_fake_control kControl = {
    .size = sizeof(heddle_fake_control),
    .reset = reset,
    .now = now,
    .thread_now = [] { return the_clock().thread_seconds(); },
    .link_busy =
        [](std::uint32_t from, std::uint32_t to) {
          return the_clock().link_busy({from, to});
        },
    .set_link = set_link,
    .set_op_seconds = set_op_seconds,
    .bytes_copied =
        [](std::uint32_t from, std::uint32_t to) {
          return the_clock().link_bytes({from, to});
        },
    .copies = [](std::uint32_t index) { return index_state(index).copies.load(); },
    .weights = [](std::uint32_t index) { return index_state(index).weights.load(); },
    .allocations = [](std::uint32_t index) { return index_state(index).allocations.load(); },
    .launches = [](std::uint32_t index, const char* op) { return index_state(index).launches(op); },
    .used_bytes = used_bytes,
    .peak_bytes = [](std::uint32_t index) { return index_state(index).peak_bytes.load(); },
    .freed_in_use = [](std::uint32_t index) { return index_state(index).freed_in_use.load(); },
    .fail_alloc = [](std::uint32_t index,
                     std::uint64_t nth) { index_state(index).alloc_fault.set(nth); },
    .fail_copy = [](std::uint32_t index,
                    std::uint64_t nth) { index_state(index).copy_fault.set(nth); },
    .fail_launch = [](std::uint32_t index,
                      std::uint64_t nth) { index_state(index).launch_fault.set(nth); },
    .kill =
        [](std::uint32_t index) { devices().each(index, [](Device& device) { device.kill(); }); },
    .revive =
        [](std::uint32_t index) { devices().each(index, [](Device& device) { device.revive(); }); },
    .set_foreign_bytes = [](std::uint32_t index,
                            std::uint64_t bytes) { index_state(index).foreign_bytes.store(bytes); },
    .pinned_bytes = pinned_bytes,
    .pinned_peak_bytes =
        [](std::uint32_t index) { return index_state(index).pinned_peak_bytes.load(); },
    .fail_pinned = [](std::uint32_t index,
                      std::uint64_t nth) { index_state(index).pinned_fault.set(nth); },
    .fail_allocs = [](std::uint32_t index, std::uint64_t nth,
                      std::uint64_t times) { index_state(index).alloc_fault.set(nth, times); },
    .fail_weight = [](std::uint32_t index,
                      std::uint64_t nth) { index_state(index).weight_fault.set(nth); },
    .refuse = [](std::uint32_t index, std::uint64_t nth) { index_state(index).refusal.set(nth); },
    .faults =
        [](std::uint32_t index) {
          const IndexState& state = index_state(index);
          std::uint64_t struck = 0;
          for (const Fault* fault : {&state.alloc_fault, &state.copy_fault, &state.launch_fault,
                                     &state.weight_fault, &state.refusal, &state.pinned_fault})
            struck += fault->struck();
          return struck;
        },
    .replays = [](std::uint32_t index) { return index_state(index).replays.load(); },
    .pinned_allocations =
        [](std::uint32_t index) { return index_state(index).pinned_allocations.load(); },
    .launches_run = [](std::uint32_t index) { return index_state(index).launches_run.load(); },
    .call_at_launch = [](std::uint32_t index, std::uint64_t nth, void (*call)(void*),
                         void* user) { index_state(index).set_launch_call(nth, call, user); },
    .call_at_weights = [](std::uint32_t index, std::uint64_t nth, void (*call)(void*),
                          void* user) { index_state(index).set_weight_call(nth, call, user); },
    .questions = [](std::uint32_t index) { return index_state(index).questions.load(); },
    .contexts = contexts,
    .contexts_made = [](std::uint32_t index) { return index_state(index).contexts_made.load(); },
    .handles = handles,
    .keep_other_streams = [](std::int32_t keeps) { keep_other_streams(keeps != 0); },
};

}  // namespace heddle::fake
