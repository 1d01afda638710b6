// A device at work: its main stream, its pool, and what must stay alive until the stream is past
// it. Nothing of the device is made before its first work: an idle one holds nothing of its driver.
// One for each device and engine, shared by all runs. Thread-safe: enqueueing takes the stream's
// lock for one call.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/kernel_table.h"
#include "engine/memory/ledger.h"
#include "engine/memory/pool.h"
#include "engine/tensor/tensor.h"

namespace heddle::engine {

class DeviceState;
class HostWeights;

// Which pool memory is of. local: written and freed in the main stream's order. inbound: written by
// copy streams while the main stream goes on, so that a freed piece waits until the main stream is
// past its last reader.
// beside: none: whoever has taken it of the device frees it.
enum class MemoryUse { local, inbound, beside };

// Memory of a device with an owner: of its pools, or beside them.
class DeviceMemory : public Storage {
 public:
  DeviceMemory(DeviceState& state, std::uint64_t bytes, MemoryUse use = MemoryUse::local,
               const PieceUse& piece = {});
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  std::byte* data() const override { return data_; }
  std::uint64_t bytes() const override { return bytes_; }
  const char* place() const override;
  void wait() const override;
  DeviceState& state() const { return state_; }

  // From now on who copies it elsewhere waits for what is enqueued so far on its device, and for
  // nothing that comes behind that. REQUIRES: nothing that is enqueued later writes it. Any thread.
  void set_written();
  // The same for several pieces of one device, by one event of its main stream.
  void set_written(std::shared_ptr<const Event> written);
  std::shared_ptr<const Event> written() const;  // nullptr: nobody has said

 protected:
  // Beside the pools. Work on it is enqueued as on memory of theirs.
  DeviceMemory(DeviceState& state, std::byte* data, std::uint64_t bytes)
      : state_(state), use_(MemoryUse::beside), data_(data), bytes_(bytes) {}

 private:
  DeviceState& state_;
  const MemoryUse use_;
  std::byte* data_;
  std::uint64_t bytes_;
  mutable std::mutex written_mutex_;
  std::shared_ptr<const Event> written_;  // guarded by written_mutex_
};

// Who has taken memory of a device beside its pools, and may be there longer than the device's
// state.
class DeviceGuest {
 public:
  virtual ~DeviceGuest() = default;
  // The state goes: gives the memory back, now.
  virtual void leave() noexcept = 0;
};

// Copies from other devices and to them have streams of their own, so that they overlap with
// computing and with each other.
enum class CopyStream { in = 0, out = 1 };

// Over 15 members: all that the engine has of a device while it is open, much of it with a lock of
// its own.
class DeviceState {
 public:
  // `ledger`: of this device; outlives it. nullptr: one without a budget.
  DeviceState(std::shared_ptr<const Device> device, std::shared_ptr<const KernelTable> kernels,
              std::shared_ptr<Ledger> ledger = nullptr);
  ~DeviceState();

  const Device& device() const { return *device_; }
  const std::shared_ptr<const Device>& share_device() const {
    return device_;
  }  // for what outlives this
  const KernelTable& kernels() const { return *kernels_; }
  // Where the bytes of weights for this device are taken from; nullptr: from the files' mappings.
  // Set before work begins; outlives all work here.
  HostWeights* host_weights() const { return host_weights_; }
  void use_host_weights(HostWeights* weights) { host_weights_ = weights; }
  // Where tensors in host memory count that are made for this device: that of the host where it is
  // the parent of this device's, or what is given here before work begins. nullptr: nowhere.
  const std::shared_ptr<Ledger>& host_ledger() const { return host_ledger_; }
  void use_host_ledger(std::shared_ptr<Ledger> ledger) { host_ledger_ = std::move(ledger); }
  Pool& pool() { return pool_; }
  PoolUse memory_use() const;  // of all pools together
  Ledger& ledger() const { return *ledger_; }

  // Lets others go of memory where the budget or the device has too little. Throws out_of_memory
  // with the ledger.
  std::shared_ptr<DeviceMemory> allocate(std::uint64_t bytes, const PieceUse& use = {}) {
    return std::make_shared<DeviceMemory>(*this, bytes, MemoryUse::local, use);
  }
  // Chunks of the pools that nothing lies in go back to the device. Waits until the main stream is
  // past what lay there.
  void trim();
  // The same without waiting: what the stream is past already. To be called now and then.
  void trim_passed();
  // As trim(), where nobody is left to be told of a failure.
  void trim_quietly() noexcept;
  // Row-major unless strides are given. `from`: a claim that is taken of first; nullptr: none.
  Tensor make(const heddle_tensor_info& info, Reservation* from = nullptr);
  // As make(), for a copy stream to write.
  Tensor make_inbound(const heddle_tensor_info& info);

  // Checks the call, takes the best kernel, enqueues. Operands may be host tensors: they are
  // brought here first. `cancel` may be nullptr: the work is wanted in any case. `from`: a claim of
  // which the kernel's workspace is taken first; nullptr: none.
  void op(std::uint32_t op, std::span<heddle_tensor* const> in, std::span<heddle_tensor* const> out,
          std::span<const std::byte> attrs, CancelFlag* cancel = nullptr,
          Reservation* from = nullptr);

  // The same elements where this device's kernels can read them: the tensor itself, or a copy
  // (row-major).
  Tensor bring(const Tensor& tensor);
  Tensor upload(const heddle_tensor_info& info, const void* src);
  // Row-major elements of a tensor that is anywhere; waits: of one whose memory says when it is
  // written for that alone. REQUIRES: bytes == dense_bytes(info).
  void read(const Tensor& tensor, void* dst, std::size_t bytes);

  // Holds memory that is not this pool's until the stream is past what is enqueued so far.
  void retain(const Tensor& tensor);
  void retain(std::shared_ptr<const void> thing);

  // What is enqueued here from now on runs after what is enqueued on `other` so far.
  void follow(DeviceState& other);

  // From now on it is told before the state goes. close() gives nothing back while it is there.
  void add_guest(std::weak_ptr<DeviceGuest> guest);
  const std::shared_ptr<Ledger>& share_ledger() const { return ledger_; }  // for guests

  // A wait for all that is enqueued so far; throws what failed.
  void synchronize();
  void record(const Event& event);
  // The same where nobody is left to be told of a failure.
  void settle() noexcept;
  // Settles, and frees everything that is kept for work under way. Before any of several
  // devices is destroyed.
  void release_all() noexcept;
  // Gives everything of the device back: chunks of the pools, streams, and what the driver made at
  // the first work. Settles. The next work makes it again. False: something of its memory is still
  // in use, and only what is free went. REQUIRES: nobody works here meanwhile. Throws what the
  // device says.
  bool close();

  // Runs enqueue(stream) with the stream's lock held.
  template <class F>
  void with_stream(F&& enqueue) {
    const std::lock_guard lock(stream_mutex_);
    enqueue(main_stream());
  }
  // The same with one of the copy streams.
  template <class F>
  void with_copy_stream(CopyStream which, F&& enqueue) {
    Copies& copies = copies_[int(which)];
    const std::lock_guard lock(copies.mutex);
    if (copies.stream == nullptr) {
      with_stream([](Stream&) {});  // the first of a device is its main one
      copies.stream = std::make_unique<Stream>(*device_);
    }
    enqueue(*copies.stream);
  }
  void* native_stream() {
    const std::lock_guard lock(stream_mutex_);
    return main_stream().native();
  }

 private:
  friend class DeviceMemory;
  std::byte* allocate_inbound(std::uint64_t bytes, const PieceUse& use);
  void retire_inbound(std::byte* piece) noexcept;
  void reclaim_inbound();

  bool is_here(const heddle_tensor& tensor) const;
  // REQUIRES: the tensor is here and row-major.
  void read_behind(const Event& written, const Tensor& tensor, void* dst);
  void reclaim_passed();
  // Made when it is first asked for. REQUIRES: stream_mutex_ is held.
  Stream& main_stream() {
    if (stream_ == nullptr) stream_ = std::make_unique<Stream>(*device_);
    return *stream_;
  }
  bool has_stream() {
    const std::lock_guard lock(stream_mutex_);
    return stream_ != nullptr;
  }
  struct Retained {
    Event passed;
    std::shared_ptr<const void> thing;
  };
  // Until the stream is past this point. Gives back what it is past already, to be freed without
  // the lock.
  [[nodiscard]] std::vector<Retained> retain_locked(std::shared_ptr<const void> thing);
  [[nodiscard]] std::vector<Retained> take_passed();
  void drop_passed();

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const KernelTable> kernels_;
  HostWeights* host_weights_ = nullptr;
  const std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<Ledger> host_ledger_;
  Pool pool_;
  std::mutex stream_mutex_;
  std::unique_ptr<Stream> stream_;  // guarded by stream_mutex_; nullptr: nothing was enqueued yet
  std::deque<Retained> retained_;   // guarded by stream_mutex_

  struct Copies {
    std::mutex mutex;
    std::unique_ptr<Stream> stream;
  };
  std::array<Copies, 2> copies_;
  struct Retired {
    Event passed;
    std::byte* piece;
  };
  Pool inbound_;
  // A point of the main stream, and what was free in its pool when it was recorded.
  struct Fence {
    Event passed;
    std::uint64_t until;
  };
  std::mutex fence_mutex_;
  std::optional<Fence> fence_;  // guarded by fence_mutex_
  std::mutex retired_mutex_;
  std::deque<Retired> retired_;  // guarded by retired_mutex_
  bool has_guests();
  Guarded<std::vector<std::weak_ptr<DeviceGuest>>> guests_;
};

}  // namespace heddle::engine
