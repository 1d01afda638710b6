// A copy from a fixed place on one device to a fixed place on another, which may be enqueued again
// and again; or, where both share memory or there are no bytes, only the order between them.
// Enqueueing does not block where both devices are of one kind; between kinds the host waits,
// because only it knows the events of both. For one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "engine/memory/device_state.h"
#include "engine/memory/watch.h"
#include "engine/transfer/route.h"

namespace heddle::engine {

class CopyTask {
 public:
  // `to` nullptr: host memory. Both places belong to the caller and stay until the arrival.
  // REQUIRES: dst == src where the route is same.
  CopyTask(DeviceState& from, DeviceState* to, const std::byte* src, std::byte* dst,
           std::uint64_t bytes);
  // By what copy(stream) enqueues on a stream of `to`, which reads memory of `from`. `bytes`: that
  // cross, for the watch.
  using Copy = std::function<void(Stream& stream)>;
  CopyTask(DeviceState& from, DeviceState& to, std::uint64_t bytes, Copy copy);

  // The copy may begin when what is enqueued so far on `from` is done, or, where `written` is
  // given, when that event of `from` is.
  // The watch is notified of every copy on its stream; where memory is shared there is none.
  void start(const WorkWatch& watch = {}, std::shared_ptr<const Event> written = nullptr);
  // What is enqueued on `to` from now on waits for the arrival of the last start; for host memory
  // the caller waits, and gets what failed.
  void await();
  bool arrived() const;
  // Started and not awaited: nothing that is enqueued on `to` is behind the copy.
  bool is_under_way() const { return is_under_way_; }

 private:
  const Event& ready() const { return written_ == nullptr ? ready_ : *written_; }
  const Event& last() const { return done_ ? *done_ : ready(); }

  DeviceState& from_;
  DeviceState* const to_;
  const Route route_;
  const std::byte* const src_;
  std::byte* const dst_;
  const std::uint64_t bytes_;
  const Copy copy_;  // empty: of src_ to dst_
  std::unique_ptr<std::byte[]> staging_;
  Event ready_;  // of `from`: the source is written, unless written_ says so
  std::shared_ptr<const Event> written_ = nullptr;
  std::optional<Event> staged_;  // of `from`: the buffer is written
  std::optional<Event> done_;    // of the device that makes the last copy
  bool is_under_way_ = false;
};

}  // namespace heddle::engine
