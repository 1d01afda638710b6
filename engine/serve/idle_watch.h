// Whether the other side of a WebSocket is still there: asked at the end of every half of the idle
// time, it is gone where nothing was heard of it for a whole one. What it takes counts as what it
// sends: over a slow line a ping waits behind the bytes of a long message. Pure; one strand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/serve/http_server.h"

namespace heddle::engine {

class IdleWatch {
 public:
  // A client that takes less in half of the idle time is as slow as one that takes nothing.
  explicit IdleWatch(const ServerLimits& limits)
      : least_bytes_(std::max<std::size_t>(
            1, std::size_t(limits.write_bytes_per_second) * limits.socket_idle_ms / 2000)) {}

  void hear() { is_heard_ = true; }  // anything that it has sent
  // It had let bytes wait, and has taken so many. Not of what the system keeps for it at once: that
  // says nothing of the other side.
  void take(std::size_t bytes) { taken_ += bytes; }

  enum class Verdict { ping, gone };
  Verdict ask() {
    const bool is_there = std::exchange(is_heard_, false) | (taken_ >= least_bytes_);
    taken_ = 0;
    if (!std::exchange(was_there_, is_there) && !is_there) return Verdict::gone;
    return Verdict::ping;
  }

 private:
  const std::size_t least_bytes_;
  std::size_t taken_ = 0;
  bool is_heard_ = false;
  bool was_there_ = true;  // when it was asked the last time; at first it has just come
};

}  // namespace heddle::engine
