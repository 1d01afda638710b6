#include "engine/run/arrival.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

// Where the first rows end, behind the tensor's first element.
std::uint64_t end_of_rows(const heddle_tensor_info& whole, std::int64_t rows) {
  if (whole.rank == 0) return dense_bytes(whole);
  heddle_tensor_info info = whole;
  info.shape[0] = std::clamp<std::int64_t>(rows, 0, whole.shape[0]);
  if (dense_bytes(info) == 0) return 0;
  return std::uint64_t(dtype_bytes(DType(info.dtype), extent(info).end));
}

}  // namespace

Arrival::Arrival(Tensor tensor)
    : tensor_(std::move(tensor)), bytes_(end_of_rows(tensor_->info, INT64_MAX)) {}

bool Arrival::is(const heddle_tensor& other) const {
  const heddle_tensor_info& info = tensor_->info;
  return has(other) && other.offset_bytes == tensor_->offset_bytes &&
         other.info.dtype == info.dtype && other.info.layout == info.layout &&
         same_shape(other.info, info) && is_contiguous(other.info);
}

void Arrival::made(std::int64_t rows) {
  const std::uint64_t bytes = end_of_rows(tensor_->info, rows);
  const std::lock_guard lock(mutex_);
  made_ = std::max(made_, bytes);
  changed_.notify_all();
}

void Arrival::end() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::coming) state_ = State::ended;
  changed_.notify_all();
}

void Arrival::stop() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::coming) state_ = State::stopped;
  changed_.notify_all();
}

bool Arrival::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::stopped;
}

void Arrival::await(const heddle_tensor& part, std::int64_t rows) const {
  await(part.offset_bytes - tensor_->offset_bytes + end_of_rows(part.info, rows));
}

void Arrival::await_end() const { await(bytes_); }

void Arrival::await(std::uint64_t end) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != State::coming || (end <= made_ && end < bytes_); });
  if (state_ == State::stopped)
    throw Error(Code::cancelled, "what the node reads is not made after all");
}

}  // namespace heddle::engine
