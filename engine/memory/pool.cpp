#include "engine/memory/pool.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {
// Small requests share chunks of this size; larger ones get a chunk of their own, which later requests may cut up.
constexpr std::uint64_t kChunkBytes = 8ull << 20;
}  // namespace

Pool::Pool(const Device& device) : device_(device), alignment_(std::max<std::uint64_t>(device.opening_info().alignment, 64)) {}

Pool::~Pool() {
  for (const auto& [id, chunk] : state_.lock()->chunks) device_.free(chunk.memory);
}

std::byte* Pool::allocate(std::uint64_t bytes) {
  bytes = (std::max<std::uint64_t>(bytes, 1) + alignment_ - 1) / alignment_ * alignment_;
  const auto state = state_.lock();
  auto best = state->free_by_size.lower_bound({bytes, nullptr});
  if (best == state->free_by_size.end()) {
    std::uint64_t got = std::max(bytes, kChunkBytes);
    std::byte* memory = nullptr;
    try {
      memory = static_cast<std::byte*>(device_.allocate(got));
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;  // a device that is dead has no lack of memory
      release_free_chunks(*state);
      got = bytes;
      try {
        memory = static_cast<std::byte*>(device_.allocate(got));
      } catch (const Error& error) {
        if (error.code() != Code::out_of_memory) throw;
        throw Error(Code::out_of_memory, cat("out of memory on ", device_.name(), ": wanted ", format_bytes(bytes), "; in use ",
                                             format_bytes(state->use.used), ", reserved ", format_bytes(state->use.reserved), " (",
                                             error.what(), ")"));
      }
    }
    const std::size_t id = state->next_chunk++;
    state->chunks[id] = {memory, got};
    state->pieces[memory] = {got, id, true};
    state->use.reserved += got;
    best = state->free_by_size.insert({got, memory}).first;
  }
  std::byte* const address = best->second;
  Piece& piece = state->pieces[address];
  state->free_by_size.erase(best);
  piece.is_free = false;
  if (piece.bytes > bytes) {
    std::byte* const rest = address + bytes;
    const std::uint64_t rest_bytes = piece.bytes - bytes;
    state->pieces[rest] = {rest_bytes, piece.chunk, true};
    state->free_by_size.insert({rest_bytes, rest});
    piece.bytes = bytes;
  }
  state->use.used += bytes;
  state->use.peak = std::max(state->use.peak, state->use.used);
  return address;
}

void Pool::free(std::byte* address) {
  const auto state = state_.lock();
  auto at = state->pieces.find(address);
  state->use.used -= at->second.bytes;
  // Joined with free neighbours of the same chunk, so that a large request finds room again.
  const auto absorb = [&](auto left, auto right) {
    state->free_by_size.erase({right->second.bytes, right->first});
    left->second.bytes += right->second.bytes;
    state->pieces.erase(right);
  };
  if (const auto next = std::next(at); next != state->pieces.end() && next->second.is_free && next->second.chunk == at->second.chunk)
    absorb(at, next);
  if (at != state->pieces.begin()) {
    const auto before = std::prev(at);
    if (before->second.is_free && before->second.chunk == at->second.chunk) {
      state->free_by_size.erase({before->second.bytes, before->first});
      before->second.bytes += at->second.bytes;
      state->pieces.erase(at);
      at = before;
    }
  }
  at->second.is_free = true;
  state->free_by_size.insert({at->second.bytes, at->first});
}

PoolUse Pool::use() const { return state_.lock()->use; }

void Pool::trim() { release_free_chunks(*state_.lock()); }

void Pool::release_free_chunks(State& state) {
  for (auto chunk = state.chunks.begin(); chunk != state.chunks.end();) {
    const auto piece = state.pieces.find(chunk->second.memory);
    if (!piece->second.is_free || piece->second.bytes != chunk->second.bytes) {
      ++chunk;
      continue;
    }
    state.free_by_size.erase({piece->second.bytes, piece->first});
    state.pieces.erase(piece);
    device_.free(chunk->second.memory);
    state.use.reserved -= chunk->second.bytes;
    chunk = state.chunks.erase(chunk);
  }
}

}  // namespace heddle::core
