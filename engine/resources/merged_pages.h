// What streamed weights are made of, kept in host memory: a patched weight is merged for the first
// step and read by the following ones. Counted in the host's ledger, within its room only, and
// evicted when somebody else is short; what finds no room is merged in every step. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/memory/ledger.h"
#include "engine/memory/weight_source.h"

namespace heddle::engine {

class MergedPages {
 public:
  // `host`: of host memory; nullptr: there is no limit.
  explicit MergedPages(std::shared_ptr<Ledger> host);
  ~MergedPages();
  MergedPages(const MergedPages&) = delete;

  // `key`: of the weight among all that are asked for. `make` is called without a lock.
  HostWeight get(const Hash128& key, const std::function<HostWeight()>& make);

  // How many weights have been made, a part or all of them, of more than the file's bytes.
  std::uint64_t merges() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the ledger's callers may be in it to the end
};

}  // namespace heddle::engine
