// What nodes made, kept for later runs under a key of how it was made. When the limit is reached, what is cheapest to
// make again for its bytes goes first. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/hash.h"
#include "engine/tensor/value.h"

namespace heddle::core {

struct CachedOutputs {
  std::vector<Value> outputs;
  std::vector<std::string> files;  // written by the node
};

class OutputCache {
 public:
  explicit OutputCache(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  std::shared_ptr<const CachedOutputs> find(Hash128 key);
  // `seconds`: what it took to make. Larger than the limit: not kept.
  void add(Hash128 key, CachedOutputs outputs, double seconds);
  bool contains(Hash128 key) const;

  void clear();
  std::uint64_t bytes() const;
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<const CachedOutputs> outputs;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::uint64_t last_use = 0;
  };
  struct State {
    std::map<Hash128, Entry> entries;
    std::uint64_t bytes = 0, clock = 0;
  };
  const std::uint64_t limit_bytes_;
  Guarded<State> state_;
};

}  // namespace heddle::core
