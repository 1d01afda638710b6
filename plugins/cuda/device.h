// Device: one GPU. Opening it makes nothing on the card. Its primary context and the handles of
// libraries are made by its first work, and given back when nothing of it is left and the engine
// asks for that; the context only if it was not there before, because other libraries of the
// process may use it, too. Owned by the engine through the device table. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "card.h"
#include "error.h"
#include "heddle/abi/device.h"

namespace heddle::cuda {

class Matmul;  // matmul.h: cuBLASLt, where it is found
class Cudnn;   // cudnn_plan.h; in builds with cuDNN only

struct Settings {
  heddle_dtype compute = HEDDLE_BF16;  // of matrix products: bf16, f16 or f32
  bool reference_only = false;         // our own plain kernels
  bool attention_fp8 = false;          // plugins/blocks/attention_fp8.h
  bool linear_int8 = false;            // plugins/blocks/linear_int8.h
  // From how many operations on cuDNN does a call. It takes a tenth of a second and more to prepare
  // a shape, in which our own kernels do some 10^11: small models are done before it has begun.
  double cudnn_flops = 1 << 30;
  // How much of the card, in percent, conv_hopper.cu must use; below it cuDNN is faster, which
  // divides sums among multiprocessors.
  int hopper_percent = 75;
  std::filesystem::path plans;  // where they are kept for later processes; empty: nowhere
  // Compute capability times ten: do what is done on such a card, to test fall-backs. 0: as it is.
  int behave_as = 0;
};

// Over 15 members: what is made at the first work has an owner, a flag that is read without a lock,
// and a thread each.
class Device {
 public:
  // options: NULL or {"compute": "bf16" | "fp16" | "f32", "kernels": "all" | "reference",
  // "cudnn_flops": 1073741824, "hopper_percent": 75, "plans": DIR | "none", "behave_as": 86,
  // "attention_dtype": "default" | "fp8_e4m3fn", "linear_dtype": "default" | "int8"}; "threads",
  // "share_index" and "share_count", which every device is told, have no meaning here. Throws
  // device::Error.
  Device(const heddle_host* host, std::uint32_t index, const heddle_value* options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const heddle_host* host() const { return host_; }
  const std::string& name() const { return name_; }  // "cuda:0"
  const Card& card() const { return card_; }
  // By which the runtime knows it. REQUIRES: use() has been called.
  int ordinal() const { return ordinal_.load(std::memory_order_acquire); }
  const Settings& settings() const { return settings_; }
  int multiprocessors() const { return card_.multiprocessors; }
  Health& health() { return health_; }
  // Makes the context when there is none; nullptr: not found, or that fails. Opened on a thread of
  // its own from the moment on that the device has a context; waits for it.
  Matmul* matmul() noexcept;
  // Whether it is there, which needs no context: for whoever only asks which kernels fit.
  bool multiplies() noexcept;
  // nullptr: only our own kernels are wanted, or this build is without it.
  Cudnn* cudnn() noexcept { return cudnn_.get(); }
  // Begins to make the context, on a thread of its own.
  void expect_work() noexcept;
  // Before a stream goes: no library knows it behind this. REQUIRES: its work is done, and this is
  // the thread's device.
  void leave(cudaStream_t stream) noexcept;

  // Makes this the calling thread's device, for the calls of the runtime that follow; by the first
  // call, its context. Throws when the context is lost.
  void use();
  // Of the thread's device, which is this one: in debug builds any other ends the process.
  void check(cudaError_t error, const char* call) {
    require_current();
    health_.check(error, call);
  }

  // Whether there is a context, or is soon.
  bool is_for_work() const { return expects_work_ || has_context(); }
  bool has_context() const { return has_context_.load(std::memory_order_acquire); }
  // Throws when something that was made on the card is left.
  void release_context();
  // Memory, streams and events that there are.
  void add_thing() { ++things_; }
  void remove_thing() { --things_; }

  // Fills everything but the size, without a context. Throws device::Error.
  void describe(heddle_device_info& info);

 private:
  void make_context();
  void make_libraries();
  void begin_opening_library();  // REQUIRES: mutex_
  void begin_opening();
  bool has_matmul() noexcept;  // or has found that there is none
  void require_current() const;

  const heddle_host* host_;
  const std::string name_;
  const Settings settings_;
  const Card card_;
  Health health_;
  std::atomic<int> ordinal_{-1};
  std::atomic<bool> has_context_{false}, has_matmul_{false};
  std::atomic<std::int64_t> things_{0};
  std::atomic<bool> was_there_{false};  // the context, before a device of ours used it
  std::mutex mutex_;
  std::unique_ptr<Matmul> matmul_;
  std::shared_ptr<Cudnn>
      cudnn_;  // shared: knows how to destroy what builds without cuDNN do not know
  std::atomic<bool> expects_work_{false};
  std::thread opening_, opening_ahead_, context_ahead_;  // mutex_, but for their ends
};

// Into a field of the ABI, as much as it takes.
template <std::size_t kSize>
void write_text(char (&field)[kSize], const std::string& text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

inline Device& as_device(heddle_device* device) { return *reinterpret_cast<Device*>(device); }
inline heddle_device* handle(Device* device) { return reinterpret_cast<heddle_device*>(device); }

}  // namespace heddle::cuda
