#include "engine/transfer/copy_task.h"

#include <utility>

#include "engine/base/error.h"

namespace heddle::engine {

CopyTask::CopyTask(DeviceState& from, DeviceState* to, const std::byte* src, std::byte* dst,
                   std::uint64_t bytes)
    : from_(from),
      to_(to),
      route_(bytes == 0 ? Route::same
                        : find_route(&from.device(), to == nullptr ? nullptr : &to->device())),
      src_(src),
      dst_(dst),
      bytes_(bytes),
      ready_(from.device()) {
  if (route_ == Route::staged) {
    staging_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    staged_.emplace(from.device());
  }
  if (route_ == Route::to_host)
    done_.emplace(from.device());
  else if (route_ != Route::same)
    done_.emplace(to->device());
}

CopyTask::CopyTask(DeviceState& from, DeviceState& to, std::uint64_t bytes, Copy copy)
    : from_(from),
      to_(&to),
      route_(Route::direct),
      src_(nullptr),
      dst_(nullptr),
      bytes_(bytes),
      copy_(std::move(copy)),
      ready_(from.device()),
      done_(to.device()) {}

void CopyTask::start(const WorkWatch& watch, std::shared_ptr<const Event> written) {
  written_ = std::move(written);
  if (written_ == nullptr) from_.record(ready_);
  const auto copy = [&](DeviceState& device, CopyStream which, const Event& after, Event& reached,
                        auto&& enqueue) {
    std::optional<Event> begin, end;
    if (watch) begin.emplace(device.device()), end.emplace(device.device());
    device.with_copy_stream(which, [&](Stream& stream) {
      stream.wait_for(after);
      if (begin) stream.record(*begin);
      enqueue(stream);
      if (end) stream.record(*end);
      stream.record(reached);
    });
    if (watch)
      watch(device, which == CopyStream::in ? StreamRow::copy_in : StreamRow::copy_out,
            std::move(*begin), std::move(*end), bytes_);
  };
  const auto leave = [&](std::byte* to, Event& reached) {
    copy(from_, CopyStream::out, ready(), reached, [&](Stream& stream) {
      from_.device().copy(stream, nullptr, to, &from_.device(), src_, bytes_);
    });
  };
  const auto enter = [&](const Device* source, const std::byte* src, const Event& after) {
    copy(*to_, CopyStream::in, after, *done_, [&](Stream& stream) {
      to_->device().copy(stream, &to_->device(), dst_, source, src, bytes_);
    });
  };
  switch (route_) {
    case Route::same:
      break;
    case Route::direct:
      if (copy_) {
        copy(*to_, CopyStream::in, ready(), *done_, copy_);
        to_->device().count_transfer(&from_.device(), &to_->device(), bytes_);
      } else {
        enter(&from_.device(), src_, ready());
      }
      break;
    case Route::from_host:
      enter(nullptr, src_, ready());
      break;
    case Route::to_host:
      try {
        leave(dst_, *done_);
      } catch (...) {
        from_.settle();  // what was enqueued writes to memory that goes now
        throw;
      }
      break;
    case Route::staged:
      leave(staging_.get(), *staged_);
      try {
        enter(nullptr, staging_.get(), *staged_);
      } catch (const Error&) {
        from_.settle();  // nobody will wait for the half that is under way
        throw;
      }
      break;
  }
  is_under_way_ = true;
}

void CopyTask::await() {
  is_under_way_ = false;
  if (to_ == nullptr) return last().wait();
  to_->with_stream([&](Stream& stream) { stream.wait_for(last()); });
}

bool CopyTask::arrived() const { return last().done(); }

}  // namespace heddle::engine
