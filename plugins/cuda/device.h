// Device: one GPU, opened through its primary context, which is retained and never reset: other
// libraries of the process may use it, too. Owned by the engine through the device table; immutable
// after opening, except for its health and what the libraries keep, which are thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "error.h"
#include "heddle/abi/device.h"

namespace heddle::cuda {

class Matmul;  // matmul.h: cuBLASLt, where it is found
class Cudnn;   // cudnn_plan.h; in builds with cuDNN only

struct Settings {
  heddle_dtype compute = HEDDLE_BF16;  // of matrix products: bf16, f16 or f32
  bool reference_only = false;         // our own plain kernels
  // From how many operations on cuDNN does a call. It takes a tenth of a second and more to prepare
  // a shape, in which our own kernels do some 10^11: small models are done before it has begun.
  double cudnn_flops = 1 << 30;
  std::filesystem::path plans;  // where they are kept for later processes; empty: nowhere
};

class Device {
 public:
  // options: NULL or {"compute": "bf16" | "fp16" | "f32", "kernels": "all" | "reference",
  // "cudnn_flops": 1073741824, "plans": DIR | "none"}; "threads", "share_index" and "share_count",
  // which every device is told, have no meaning here. Throws device::Error.
  Device(const heddle_host* host, std::uint32_t index, const heddle_value* options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const heddle_host* host() const { return host_; }
  const std::string& name() const { return name_; }  // "cuda:0"
  int ordinal() const { return ordinal_; }
  const std::string& uuid() const { return uuid_; }  // "GPU-..."
  const Settings& settings() const { return settings_; }
  int multiprocessors() const { return multiprocessors_; }
  Health& health() { return health_; }
  // nullptr: not found. Opened on a thread of its own from the moment on that the device has a
  // context; waits for it.
  Matmul* matmul();
  Cudnn* cudnn() {
    return cudnn_.get();
  }  // nullptr: only our own kernels are wanted, or this build is without it

  // Makes this the calling thread's device, for the calls of the runtime that follow. Throws when
  // the context is lost.
  void use();
  void check(cudaError_t error, const char* call) { health_.check(error, call); }

  // Fills everything but the size. Throws device::Error.
  void describe(heddle_device_info& info);

 private:
  void begin_opening();

  const heddle_host* host_;
  std::string name_;
  int ordinal_;
  Settings settings_;
  std::string uuid_;
  int multiprocessors_ = 0;
  Health health_;
  std::once_flag matmul_opened_;
  std::unique_ptr<Matmul> matmul_;
  std::shared_ptr<Cudnn>
      cudnn_;  // shared: knows how to destroy what builds without cuDNN do not know
  std::thread opening_;
};

inline Device& as_device(heddle_device* device) { return *reinterpret_cast<Device*>(device); }
inline heddle_device* handle(Device* device) { return reinterpret_cast<heddle_device*>(device); }

}  // namespace heddle::cuda
