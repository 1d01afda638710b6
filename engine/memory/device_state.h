// A device at work: its main stream, its pool, and what must stay alive until the stream is past it. One for each device
// and engine, shared by all runs. Thread-safe: enqueueing takes the stream's lock for one call.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "engine/device/device.h"
#include "engine/device/kernel_table.h"
#include "engine/memory/pool.h"
#include "engine/tensor/tensor.h"

namespace heddle::core {

class DeviceState;

// Pool memory with an owner; freed in stream order.
class DeviceMemory final : public Storage {
 public:
  DeviceMemory(DeviceState& state, std::uint64_t bytes);
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  std::byte* data() const override { return data_; }
  std::uint64_t bytes() const override { return bytes_; }
  const char* place() const override;
  void wait() const override;
  DeviceState& state() const { return state_; }

 private:
  DeviceState& state_;
  std::byte* data_;
  std::uint64_t bytes_;
};

class DeviceState {
 public:
  DeviceState(std::shared_ptr<const Device> device, std::shared_ptr<const KernelTable> kernels);
  ~DeviceState();

  const Device& device() const { return *device_; }
  const KernelTable& kernels() const { return *kernels_; }
  Pool& pool() { return pool_; }

  std::shared_ptr<DeviceMemory> allocate(std::uint64_t bytes) { return std::make_shared<DeviceMemory>(*this, bytes); }
  Tensor make(const heddle_tensor_info& info);  // row-major unless strides are given

  // Checks the call, takes the best kernel, enqueues. Operands may be host tensors: they are brought here first.
  void op(std::uint32_t op, std::span<heddle_tensor* const> in, std::span<heddle_tensor* const> out, std::span<const std::byte> attrs);

  // The same elements where this device's kernels can read them: the tensor itself, or a copy (row-major).
  Tensor bring(const Tensor& tensor);
  Tensor upload(const heddle_tensor_info& info, const void* src);
  // Row-major elements of a tensor that is anywhere; waits. REQUIRES: bytes == dense_bytes(info).
  void read(const Tensor& tensor, void* dst, std::size_t bytes);

  // Holds memory that is not this pool's until the stream is past what is enqueued so far.
  void keep(const Tensor& tensor);

  // A wait for all that is enqueued so far; throws what failed.
  void synchronize();
  void record(const Event& event);
  // The same where nobody is left to be told of a failure.
  void settle() noexcept;

  // Runs enqueue(stream) with the stream's lock held.
  template <class F>
  void with_stream(F&& enqueue) {
    const std::lock_guard lock(stream_mutex_);
    enqueue(stream_);
  }
  void* native_stream() const { return stream_.native(); }

 private:
  bool is_here(const heddle_tensor& tensor) const;
  void keep_locked(std::shared_ptr<const Storage> storage);  // until the stream is past this point

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const KernelTable> kernels_;
  Pool pool_;
  std::mutex stream_mutex_;
  Stream stream_;
  struct Kept {
    Event passed;
    std::shared_ptr<const Storage> storage;
  };
  std::deque<Kept> kept_;  // guarded by stream_mutex_
};

}  // namespace heddle::core
