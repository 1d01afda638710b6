// Which kernel runs an op on a device: all kernels known for the device's kind, the highest answer
// of fits() wins, the one registered first among equals. Filled while plugins load; then immutable,
// any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device.h"

namespace heddle::engine {

class KernelTable {
 public:
  // The kernels of a device's own plugin are added by its kind once; `owner` keeps their library.
  // Throws invalid_argument where check() does.
  void add(const heddle_kernel* kernel, std::string plugin, std::shared_ptr<const void> owner);

  // Throws invalid_argument, which names the plugin, the kernel and what it lacks. Any thread.
  static void check(const heddle_kernel* kernel, std::string_view plugin);

  // Throws unsupported, naming op, device and operands, when no kernel fits.
  const heddle_kernel& choose(const Device& device, const heddle_op_call& call) const;

  struct Entry {
    const heddle_kernel* kernel;
    std::string plugin;
    std::shared_ptr<const void> owner;
  };
  const std::vector<Entry>& all() const { return all_; }

 private:
  std::vector<Entry> all_;
  std::vector<std::vector<const heddle_kernel*>> by_op_;  // by op_id
};

// "linear/1: f32 (1, 64, 256), bf16 (1024, 256), absent -> f32 (1, 64, 1024)", for messages.
std::string describe(const heddle_op_call& call);

}  // namespace heddle::engine
