// Told of every step that a run takes, as it takes it: for whoever holds a run against its plan.
// Not for users: engine/run/observer.h is. Called on the run's threads, by several of them at once,
// and under the run's locks. A run with one reads no output before it is whole
// (heddle/abi/parts.h), so that steps follow one another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/graph/graph.h"

namespace heddle::engine {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // `device`: as a node sees it, "cuda:1" or "host". A node that waits for lazy inputs has not
  // begun.
  virtual void began(NodeIndex node, std::string_view device) = 0;
  virtual void done(NodeIndex node, std::span<const Value> outputs) = 0;
  // A node has been given a value through a link: what is at `at`, a device or kHostSide, by a copy
  // that sent() has told of; kWhereMade: as its maker left it.
  static constexpr std::uint32_t kWhereMade = 0xfffffffe;
  virtual void read(NodeIndex reader, const Source& source, std::uint32_t at) = 0;
  // A value has been given to a copy: from where its tensors are to where `copy` is, each a device
  // or kHostSide. 0 bytes: nothing is copied, its tensors are there or share memory with there.
  virtual void sent(const Source& source, std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                    const Value& copy) = 0;
  // The run releases a value where it was made, or a copy of it.
  virtual void release(const Source& source, const Value& value) = 0;
  virtual void release_copy(const Source& source, std::uint32_t at, const Value& copy) = 0;
};

}  // namespace heddle::engine
