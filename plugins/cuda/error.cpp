#include "error.h"

#include "heddle/device.hpp"

namespace heddle::cuda {

namespace {

heddle_code code_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return HEDDLE_OUT_OF_MEMORY;
    case cudaErrorNotSupported:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
      return HEDDLE_UNSUPPORTED;
    default:
      // What a captured graph cannot hold.
      return error >= cudaErrorStreamCaptureUnsupported &&
                     error <= cudaErrorStreamCaptureWrongThread
                 ? HEDDLE_UNSUPPORTED
                 : HEDDLE_INTERNAL;
  }
}

std::string text_of(cudaError_t error, const char* call) {
  return device::cat(call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ", ",
                     int(error), ")");
}

}  // namespace

bool is_sticky(cudaError_t error) {
  constexpr int kContained = 721;  // cudaErrorContained, for which CUDA 12.4 has no name
  if (static_cast<int>(error) == kContained) return true;
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

void fail_call(const char* call, cudaError_t error) {
  cudaGetLastError();  // else a later launch would be told of it
  throw device::Error(code_of(error), text_of(error, call));
}

void Health::require_whole() const {
  if (!broken_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  device::fail(HEDDLE_INTERNAL,
               "this device failed before and takes no more work in this process: ", what_);
}

void Health::note_and_fail(cudaError_t error, const char* call) {
  if (is_sticky(error)) {
    const std::lock_guard lock(mutex_);
    if (what_.empty()) what_ = text_of(error, call);
    broken_.store(true, std::memory_order_release);
  }
  fail_call(call, error);
}

}  // namespace heddle::cuda
