// TestDevice: a device of a plugin, opened for a test, and one op run on it from host tensors to
// host tensors. Works for any device plugin: memory goes in and out by the plugin's own copies. One
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/abi/device.h"
#include "host_tensor.h"
#include "mini_host.h"

namespace heddle::conformance {

// An op with its operands. weight: which input goes through make_weight, for which use, and as
// which type it is made known (0: its own).
struct OpCase {
  std::string name;  // "linear/1 gelu f16"
  std::string op;
  std::vector<std::optional<HostTensor>> in;
  std::vector<HostTensor> out;  // shapes and types; contents are overwritten
  std::vector<std::byte> attrs{};
  struct Weight {
    std::uint32_t input;
    std::int32_t use;
    heddle_dtype told = 0;
  };
  std::optional<Weight> weight{};
  bool in_place = false;  // the output may lie on input 0
  // Axis 0 of the output is a batch; these inputs have it, too, the others are shared by the items.
  // Empty: no batch.
  std::vector<std::uint32_t> item_inputs{};
};

// A plugin's library, loaded. Throws std::runtime_error with the reason.
class Plugin {
 public:
  explicit Plugin(const std::string& path);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  const heddle_device_desc& device() const { return *device_; }
  // A table of heddle/abi/device.h, or nullptr.
  const void* extension(const char* name) const {
    return device_->extension == nullptr ? nullptr : device_->extension(name);
  }
  // For its kind of device: in the device table, and besides.
  const std::vector<const heddle_kernel*>& kernels() const { return kernels_; }

 private:
  void* library_;
  const heddle_device_desc* device_;
  std::vector<const heddle_kernel*> kernels_;
};

double wall_seconds();

class TestDevice {
 public:
  TestDevice(const Plugin& plugin, const OptionMap& options, std::uint32_t index = 0);
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  heddle_device* raw() const { return device_; }
  heddle_stream* stream() const { return stream_; }
  const heddle_device_desc& desc() const { return plugin_.device(); }
  template <class Table>
  const Table* extension(const char* name) const {
    return static_cast<const Table*>(plugin_.extension(name));
  }
  const std::vector<const heddle_kernel*>& kernels() const { return plugin_.kernels(); }
  heddle_device_info info() const;

  // How a weight would stand on the device; nothing where the device answers HEDDLE_UNSUPPORTED:
  // it has no weights of this use and type. Throws std::runtime_error for every other refusal.
  std::optional<heddle_weight_layout> weight_layout(heddle_use use,
                                                    const heddle_tensor_info& info) const;
  // Whether there is a kernel of the op, for whatever shapes.
  bool offers(const std::string& op) const;
  // Kernels that fit the case, best first; nothing is allocated or launched. None: the device does
  // not offer it.
  std::vector<const heddle_kernel*> fitting(const OpCase& op_case) const;

  // Runs the case and fills its outputs, which are poisoned before. kernel == nullptr: the best
  // one. Throws std::runtime_error with the device's message.
  void run(OpCase& op_case, const heddle_kernel* kernel = nullptr) const;
  // The same, the output written onto input 0. REQUIRES: in_place, and equal types and shapes.
  void run_in_place(OpCase& op_case, const heddle_kernel* kernel = nullptr) const;

  // Waits for everything on the stream. Throws the first failure.
  void wait() const;

  // Seconds per launch by the given clock, over enough repeats to take about `seconds`: the better
  // of two runs.
  using Clock = double (*)();
  double measure(OpCase& op_case, const heddle_kernel* kernel, double seconds, Clock clock) const;

  // Memory of this device.
  struct Buffer {
    const TestDevice* device;
    void* memory;
    std::size_t bytes;
    Buffer(const TestDevice& device, std::size_t bytes);
    ~Buffer();
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&&) = delete;
  };

 private:
  struct Prepared;
  Prepared prepare(const OpCase& op_case, bool in_place) const;
  std::optional<Prepared> shapes_of(const OpCase& op_case) const;
  const heddle_kernel* best(const heddle_op_call& call) const;
  void launch(const Prepared& prepared, const heddle_kernel& kernel, void* workspace) const;
  void run_prepared(OpCase& op_case, const heddle_kernel* kernel, bool in_place) const;

  const Plugin& plugin_;
  const heddle_device_desc& desc_;
  heddle_device* device_ = nullptr;
  heddle_stream* stream_ = nullptr;
};

}  // namespace heddle::conformance
