// What a stream is given while it records: calls as they came, to be launched again by each replay.
// Streams that wait for it meanwhile record with it, each in a lane of its own. One thread at a
// time. Memory that a call names need not stay: a replay finds it gone, as a launch would.
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

  void add(std::size_t lane, const heddle_op_call& call, void* workspace);
  // A stream that waits for what is recorded; gives its lane. It is let go by finish().
  std::size_t join(Stream& stream);
  std::size_t mark(std::size_t lane);  // a point of a lane, for wait()
  void wait(std::size_t lane, std::size_t mark);
  // Nothing more is recorded. Throws where the first lane does not wait for the end of another.
  void finish();
  bool is_recording() const { return is_recording_; }

  // Counted as so many launches. A lane runs as far ahead of those before it as it may.
  void replay(Stream& stream) const;
  Device& device() const { return device_; }
  // What it is said to take of the device's memory; nothing is taken.
  static constexpr std::uint64_t kCallBytes = 512;
  std::uint64_t bytes() const;

 private:
  struct Call {
    std::string op;
    std::vector<std::optional<heddle_view>> in, out;
    std::vector<std::byte> attrs;
    void* workspace;
  };
  struct Item {
    enum class Kind { call, mark, wait } kind = Kind::call;
    std::optional<Call> call;
    std::size_t mark = 0;
  };
  void launch(Stream& stream, const Call& call) const;

  Device& device_;
  std::vector<std::vector<Item>> lanes_{1};
  std::vector<Stream*> joined_;  // borrowed while it records
  std::size_t marks_ = 0;
  bool is_recording_ = true;
};

}  // namespace heddle::fake
