// What goes when memory is short, and what before what: the one place that says so. Whoever can
// free memory registers with the ledger of that memory (Ledger::on_shortage) under one of these;
// the ledger asks in their order, on the thread that needs room, and only as long as bytes are
// missing.
//
// The rule: what costs least to have back goes first, and what a run under way still has to use
// goes last. Nothing that work in flight reads goes at all.
//
// A ledger asks for its own memory. What a device that computes in host memory holds is registered
// with the host's ledger, too, so that it goes for another device.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace heddle::engine {

enum class EvictionOrder : std::uint8_t {
  // Chunks of a pool that hold nothing: to take them from the driver again is all that it costs.
  // DeviceState.
  free_chunks,

  // Host memory only: weights with patches merged in, kept for weights that are streamed. Their
  // parts are in host memory or in a file; to merge them again takes one pass over the bytes. What
  // enqueued copies read stays. MergedPages.
  merged_weights,

  // Host memory only: bytes of files, which can be read again. HostWeights::evict(), in this
  // order. Loads that lack room themselves do the first three only (HostWeights::evict_one()):
  //   1. pages and copies that nobody reads: those whose next use is farthest, as far as anybody
  //      said what comes, and of what nobody expects the least recently used;
  //   2. pinned buffers that are out of use;
  //   3. pinned buffers that were filled ahead of their use, the farthest first;
  //   4. reads ahead that have not begun;
  //   5. what streams still copy from, as soon as they have.
  file_bytes,

  // Weights on a device, of models that no run under way will use: they are in host memory or in a
  // file. Models used longest ago first; of a model from the end of its blocks, because the next
  // use begins with the first; small weights last, because they take little and each costs a copy.
  // WeightStore::evict(Reach::without_use).
  weights_without_use,

  // Values that nodes made, kept for later runs. They cost more than weights of the same size
  // because they have to be computed again: what is cheapest to make again for its bytes goes
  // first. From a device they go to host memory, where that has room. OutputCache::make_room().
  cached_values,

  // Weights on a device that runs under way will use: whatever goes here is loaded again, in this
  // very run. Models whose next use is farthest first, then as above.
  // WeightStore::evict(Reach::all).
  weights_in_use,
};

// For people, in the order of the values.
inline constexpr std::array<std::string_view, 6> kEvictionNames = {
    "free chunks",         "merged weights", "file bytes",
    "weights without use", "cached values",  "weights in use"};

}  // namespace heddle::engine
