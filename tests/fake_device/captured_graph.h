// What a stream is given while it records: calls as they came, to be launched again by each replay.
// One thread at a time. Memory that a call names need not stay: a replay finds it gone, as a launch
// would.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/abi/device.h"

namespace heddle::fake {

class Device;
class Stream;

class CapturedGraph {
 public:
  explicit CapturedGraph(Device& device) : device_(device) {}

  void add(const heddle_op_call& call, void* workspace);
  void replay(Stream& stream) const;  // counted as so many launches
  Device& device() const { return device_; }
  // What it is said to take of the device's memory; nothing is taken.
  static constexpr std::uint64_t kCallBytes = 512;
  std::uint64_t bytes() const { return kCallBytes * calls_.size(); }

 private:
  struct Call {
    std::string op;
    std::vector<std::optional<heddle_view>> in, out;
    std::vector<std::byte> attrs;
    void* workspace;
  };
  Device& device_;
  std::vector<Call> calls_;
};

}  // namespace heddle::fake
