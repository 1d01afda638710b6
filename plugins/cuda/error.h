// What CUDA calls answer, as errors that name the call. An error that no later call recovers from
// (an illegal address, a failed launch) is remembered by the device, which then refuses work:
// others of the process go on. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string>

namespace heddle::cuda {

// Throws device::Error "CALL: text (name, number)" with the code that fits: out of memory,
// unsupported or internal.
[[noreturn]] void fail_call(const char* call, cudaError_t error);

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail_call(call, error);
}

// Whether the context is lost with this error.
bool is_sticky(cudaError_t error);

// The health of one context.
class Health {
 public:
  // As check(), and remembers what is sticky.
  void check(cudaError_t error, const char* call) {
    if (error != cudaSuccess) note_and_fail(error, call);
  }
  // Throws the error that broke the context, if any has.
  void require_whole() const;

 private:
  [[noreturn]] void note_and_fail(cudaError_t error, const char* call);

  std::atomic<bool> broken_ = false;
  mutable std::mutex mutex_;
  std::string what_;  // mutex_
};

}  // namespace heddle::cuda
