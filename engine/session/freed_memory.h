// Whether memory that has come free since a session was set up is worth setting it up anew, with
// less that is streamed. Other programs take and free memory as they like, so what came has to stay
// for some steps, and for twice as many each time that the session has been set up for it. A value;
// one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::engine {

class FreedMemory {
 public:
  // Bytes that the session might use on each device slot now that it has been set up.
  void begin(std::vector<std::uint64_t> usable);
  // Before a step, of which there are `steps_left` with it. `usable`: as above; `streamed`: bytes
  // that a step copies there. True: to be set up anew now, and begin() is called again.
  bool is_worth_it(std::span<const std::uint64_t> usable, std::span<const std::uint64_t> streamed,
                   std::uint32_t steps_left);

 private:
  static constexpr std::uint64_t kNotable = 8;  // a part of what is streamed
  static constexpr std::uint32_t kLeastSteps = 2;

  std::vector<std::uint64_t> before_;  // by device slot
  std::uint32_t seen_ = 0;             // steps in a row that had more
  std::uint32_t wanted_ = kLeastSteps;
};

}  // namespace heddle::engine
