// Device: one CPU device, its threads and its settings. Several may be open at once: each has its
// own pool, so that placements over many devices can be tried on one machine. Owned by the engine
// through the device table; immutable after opening, except for the pool and the cache, which are
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/abi/device.h"
#include "pool.h"
#include "stream.h"
#include "vector_kernels.h"

namespace heddle::cpu {

class Primitives;  // onednn_primitives.h; in builds with oneDNN only

struct Settings {
  unsigned threads = 1;
  heddle_dtype compute = HEDDLE_F32;
  bool reference_only =
      false;  // plain loops and plain weights: for sanitizers and as the oracle of tests
  bool attention_fp8 = false;  // plugins/blocks/attention_fp8.h
  bool linear_int8 = false;    // plugins/blocks/linear_int8.h
};

class Device {
 public:
  // options: NULL or {"threads": 4, "share_index": 0, "share_count": 2, "compute": "f32" | "bf16",
  // "kernels": "reference" | "all", "attention_dtype": "default" | "fp8_e4m3fn", "linear_dtype":
  // "default" | "int8"}; absent: this share of the cores, of which there is one, bf16 where the
  // processor multiplies it in tiles (AMX), all kernels, attention and products in the compute
  // type.
  Device(const heddle_host* host, std::uint32_t index, const heddle_value* options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const heddle_host* host() const { return host_; }
  const std::string& name() const { return name_; }  // "cpu:0"
  const Settings& settings() const { return settings_; }
  std::uint64_t memory_total() const { return memory_total_; }  // bytes
  Pool& pool() { return pool_; }
  const VectorKernels& vector() const { return vector_; }
#if defined(HEDDLE_WITH_ONEDNN)
  Primitives& primitives() { return *primitives_; }
#endif

 private:
  const heddle_host* host_;
  std::string name_;
  Settings settings_;
  std::uint64_t memory_total_;
  Pool pool_;
  const VectorKernels& vector_;
#if defined(HEDDLE_WITH_ONEDNN)
  std::unique_ptr<Primitives> primitives_;
#endif
};

// The C handles are these classes under another name.
inline Device& as_device(heddle_device* device) { return *reinterpret_cast<Device*>(device); }
inline heddle_device* handle(Device* device) { return reinterpret_cast<heddle_device*>(device); }
inline Stream& as_stream(heddle_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

}  // namespace heddle::cpu
