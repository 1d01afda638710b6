#include "engine/transfer/crossing.h"

namespace heddle::core {

Crossing::Crossing(DeviceState& from, DeviceState* to, const std::byte* src, std::byte* dst, std::uint64_t bytes)
    : from_(from),
      to_(to),
      route_(find_route(&from.device(), to == nullptr ? nullptr : &to->device())),
      src_(src),
      dst_(dst),
      bytes_(bytes),
      ready_(from.device()) {
  if (route_ == Route::staged) {
    staging_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    staged_.emplace(from.device());
  }
  if (route_ == Route::to_host) done_.emplace(from.device());
  else if (route_ != Route::same) done_.emplace(to->device());
}

void Crossing::start() {
  from_.record(ready_);
  const auto leave = [&](std::byte* to, Event& reached) {
    from_.with_copy_stream(CopyStream::out, [&](Stream& stream) {
      stream.wait_for(ready_);
      from_.device().copy(stream, nullptr, to, &from_.device(), src_, bytes_);
      stream.record(reached);
    });
  };
  const auto enter = [&](const Device* source, const std::byte* src, const Event& after) {
    to_->with_copy_stream(CopyStream::in, [&](Stream& stream) {
      stream.wait_for(after);
      to_->device().copy(stream, &to_->device(), dst_, source, src, bytes_);
      stream.record(*done_);
    });
  };
  switch (route_) {
    case Route::same: break;
    case Route::direct: enter(&from_.device(), src_, ready_); break;
    case Route::from_host: enter(nullptr, src_, ready_); break;
    case Route::to_host: leave(dst_, *done_); break;
    case Route::staged:
      leave(staging_.get(), *staged_);
      enter(nullptr, staging_.get(), *staged_);
      break;
  }
}

void Crossing::await() {
  if (to_ == nullptr) return last().wait();
  to_->with_stream([&](Stream& stream) { stream.wait_for(last()); });
}

bool Crossing::arrived() const { return last().done(); }

}  // namespace heddle::core
