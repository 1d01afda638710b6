// Who wants to know when enqueued work runs: told between which two points of which stream it lies.
// What is measured, and why, is the watcher's affair.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/memory/device_state.h"

namespace heddle::engine {

// The streams of a device.
enum class StreamRow { compute, copy_in, copy_out };

// Called on the thread that enqueues, with no stream's lock held, after both events have been
// recorded on the stream; the receiver owns them. `bytes` that are moved, or 0. Empty where nobody
// watches: then no event is made.
using WorkWatch = std::function<void(DeviceState& device, StreamRow row, Event begin, Event end,
                                     std::uint64_t bytes)>;

// Runs enqueue(), whose work goes to the device's main stream, and tells the watch of it.
template <class F>
void watched(const WorkWatch& watch, DeviceState& device, std::uint64_t bytes, F&& enqueue) {
  if (!watch) return enqueue();
  Event begin(device.device()), end(device.device());
  device.record(begin);
  enqueue();
  device.record(end);
  watch(device, StreamRow::compute, std::move(begin), std::move(end), bytes);
}

}  // namespace heddle::engine
