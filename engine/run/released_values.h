// Values that a run has let go of last, a few: a device tells of a failure when somebody waits for
// it, and by then what the lost work had read has been released. A run that begins again elsewhere
// goes on from them. A plain value; guarded by its owner.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/resources/environment.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

class ReleasedValues {
 public:
  // `most_bytes`: of tensors, together; 0: it keeps nothing.
  explicit ReleasedValues(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // So many that they matter on none of these devices.
  static std::uint64_t most_bytes(std::span<const RunDevice> devices);

  bool keeps_any() const { return most_bytes_ > 0; }
  // `dropped` gets what has to go for it, to be freed without locks.
  void add(const Source& source, Value value, std::vector<Value>& dropped);
  Value find(const Source& source) const;  // empty: it is not here

 private:
  struct Kept {
    Source source;
    Value value;
    std::uint64_t bytes;
  };
  static constexpr std::size_t kMost = 4096;  // values

  const std::uint64_t most_bytes_;
  std::deque<Kept> kept_;  // the oldest first
  std::uint64_t bytes_ = 0;
};

}  // namespace heddle::engine
