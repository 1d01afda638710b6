// The cpu device that computes for a fake one, found through the engine's registry: its kernels,
// and those that any plugin has for cpu devices. Immutable once opened, but for its streams.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "configuration.h"
#include "heddle/abi/device.h"

namespace heddle::fake {

// The device kind "cpu", or nullptr. [any]
const heddle_device_desc* find_cpu(const heddle_host* host);
// Every kernel for cpu devices. [any]
std::vector<const heddle_kernel*> cpu_kernels(const heddle_host* host);

class Cpu {
 public:
  // Throws device::Error when no plugin brings a cpu device, or it refuses the options.
  Cpu(const heddle_host* host, std::uint32_t index, const Configuration& configuration);
  ~Cpu();
  Cpu(const Cpu&) = delete;

  struct Choice {
    const heddle_kernel* kernel = nullptr;  // nullptr: none fits
    std::int32_t answer = 0;
  };
  Choice choose(const heddle_op_call& call) const;

  heddle_dtype compute() const { return compute_; }
  const heddle_device_desc& desc() const { return desc_; }
  heddle_device* raw() const { return raw_; }
  void check(heddle_status* status) const;  // throws device::Error with what it says

 private:
  const heddle_host* host_;
  heddle_device_desc desc_{};
  heddle_device* raw_ = nullptr;
  heddle_dtype compute_ = HEDDLE_F32;
  std::map<std::string, std::vector<const heddle_kernel*>, std::less<>> kernels_;
};

// A stream of the cpu device. One thread at a time.
class CpuStream {
 public:
  explicit CpuStream(const Cpu& cpu);
  ~CpuStream();
  CpuStream(const CpuStream&) = delete;

  // Both return when the work is done. Throw device::Error.
  void launch(const heddle_kernel& kernel, const heddle_op_call& call, void* workspace);
  void make_weight(std::int32_t use, const heddle_weight_layout& layout,
                   const std::vector<heddle_view>& parts, void* dst);

 private:
  void finish(heddle_status* status);

  const Cpu& cpu_;
  heddle_stream* stream_ = nullptr;
  heddle_event* done_ = nullptr;
};

}  // namespace heddle::fake
