// What the embedding program gives an engine for the whole process: a place for log messages,
// memory for host tensors.
#pragma once

#include <cstdint>

#include "heddle/engine.hpp"

namespace heddle {

// In force while this lives, unless another one takes the place meanwhile; then the defaults are
// back.
class HostHooks {
 public:
  explicit HostHooks(const EngineOptions& options);
  ~HostHooks();
  HostHooks(const HostHooks&) = delete;

 private:
  std::uint64_t log_ = 0, allocator_ = 0;  // 0: not given
};

}  // namespace heddle
