#include "engine/memory/pool.h"

#include <algorithm>
#include <new>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// Of a free chunk that is reused, so much may be more than was asked for.
constexpr std::uint64_t kReuseWaste = 8;

std::uint64_t shared_chunk(const Device& device, const Ledger& ledger, std::uint64_t alignment) {
  std::uint64_t most = ledger.budget();
  if (const std::uint64_t total = device.opening_info().memory_total; total != 0)
    most = std::min(most, total);
  return std::min(most / Pool::kChunksInBudget, Pool::kMostShared) / alignment * alignment;
}

}  // namespace

Pool::Pool(const Device& device, Ledger& ledger)
    : device_(device),
      ledger_(ledger),
      alignment_(std::max<std::uint64_t>(device.opening_info().alignment, 64)),
      shared_bytes_(shared_chunk(device, ledger, alignment_)) {}

Pool::~Pool() = default;

std::uint64_t Pool::rounded(std::uint64_t bytes) const {
  return (std::max<std::uint64_t>(bytes, 1) + alignment_ - 1) / alignment_ * alignment_;
}

std::byte* Pool::allocate(std::uint64_t asked, const PieceUse& use) {
  const std::uint64_t bytes = rounded(asked);
  if (bytes < asked) throw ledger_.out_of_memory(asked, use.what);
  if (std::byte* piece = take_free(*state_.lock(), bytes, use)) return piece;
  Chunk made = make_chunk(bytes, use);  // without the pool's lock: making room gives pieces back
  const auto state = state_.lock();
  const std::size_t id = state->next_chunk;
  const std::uint64_t taken = made.bytes();
  std::byte* const memory = made.memory.get();
  BySize& of = made.is_shared ? state->free_parts : state->free_chunks;
  BySize::iterator free;
  try {
    state->chunks[id] = std::move(made);
    state->pieces[memory] = {taken, id, true, {}, {}};
    free = of.insert({taken, memory}).first;
  } catch (...) {  // a chunk is noted whole or not at all
    state->pieces.erase(memory);
    state->chunks.erase(id);
    throw;
  }
  ++state->next_chunk;
  state->use.reserved += taken;
  return hand_out(*state, free, of, bytes, use);
}

// One that small pieces share, or, where there is no memory for that, as for a large one.
Pool::Chunk Pool::make_chunk(std::uint64_t bytes, const PieceUse& use) {
  if (is_small(bytes)) {
    if (auto taken = ledger_.try_take(shared_bytes_)) try {
        return fill_chunk(std::move(*taken), true, use);
      } catch (const Error& error) {
        if (error.code() != Code::out_of_memory) throw;
      }
  }
  return fill_chunk(ledger_.take(bytes, use.what, use.from), false, use);
}

Pool::Chunk Pool::fill_chunk(TakenBytes taken, bool is_shared, const PieceUse& use) {
  std::byte* memory = nullptr;
  try {
    memory = allocate_chunk(taken.bytes(), use);
  } catch (...) {
    taken.give_back_refused();
    throw;
  }
  return {std::move(taken), {memory, Free{&device_}}, is_shared, 0};
}

std::byte* Pool::take_free(State& state, std::uint64_t bytes, const PieceUse& use) {
  if (is_small(bytes))
    if (const auto part = state.free_parts.lower_bound({bytes, nullptr});
        part != state.free_parts.end())
      return hand_out(state, part, state.free_parts, bytes, use);
  // Who has claimed room has counted to the byte, so nothing may be wasted of it.
  const std::uint64_t waste = use.from != nullptr ? 0 : bytes / kReuseWaste;
  const auto chunk = state.free_chunks.lower_bound({bytes, nullptr});
  if (chunk == state.free_chunks.end() || chunk->first - bytes > waste) return nullptr;
  return hand_out(state, chunk, state.free_chunks, bytes, use);
}

std::byte* Pool::hand_out(State& state, BySize::iterator from, BySize& of, std::uint64_t bytes,
                          const PieceUse& use) {
  std::byte* const address = from->second;
  Piece& piece = state.pieces[address];
  const bool is_parted = state.chunks[piece.chunk].is_shared && piece.bytes > bytes;
  const std::uint64_t taken = is_parted ? bytes : piece.bytes;
  const std::uint64_t workspace_bytes = std::min(use.workspace, taken);
  TaggedBytes tagged(ledger_, use.tag, taken - workspace_bytes), workspace;
  if (workspace_bytes > 0)
    workspace = TaggedBytes(ledger_, {MemoryKind::workspaces, use.tag.owner}, workspace_bytes);
  if (is_parted) {
    std::byte* const rest = address + bytes;
    const std::uint64_t rest_bytes = piece.bytes - bytes;
    try {
      state.pieces[rest] = {rest_bytes, piece.chunk, true, {}, {}};
      state.free_parts.insert({rest_bytes, rest});
    } catch (...) {  // the piece stays whole, and free
      state.pieces.erase(rest);
      throw;
    }
    piece.bytes = bytes;
  }
  of.erase(from);
  piece.is_free = false;
  piece.tagged = std::move(tagged);
  piece.workspace = std::move(workspace);
  state.use.used += piece.bytes;
  state.use.peak = std::max(state.use.peak, state.use.used);
  return address;
}

// The driver may refuse what the ledger has given: others take memory between two polls. Tried
// again at least once, and as long as something is evicted for it.
std::byte* Pool::allocate_chunk(std::uint64_t bytes, const PieceUse& use) {
  for (bool is_last = false;;) {
    try {
      return static_cast<std::byte*>(device_.allocate(bytes));
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory)
        throw;  // a device that is dead has no lack of memory
      if (is_last) throw ledger_.out_of_memory(bytes, use.what, error.what());
      is_last = !ledger_.after_refusal(bytes);
    }
  }
}

namespace {

// Memory goes back in destructors, which cannot fail: what there is no place to note is free all
// the same, and found by trim() or by its neighbours.
template <class BySize>
void list_free(BySize& free, std::uint64_t bytes, std::byte* address) {
  try {
    free.insert({bytes, address});
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

void Pool::free(std::byte* address) {
  const auto state = state_.lock();
  auto at = state->pieces.find(address);
  state->use.used -= at->second.bytes;
  at->second.tagged.end();
  at->second.workspace.end();
  Chunk& chunk = state->chunks[at->second.chunk];
  at->second.is_free = true;
  if (!chunk.is_shared) {
    chunk.free_since = ++state->frees;
    list_free(state->free_chunks, at->second.bytes, address);
    return;
  }
  // Joined with free neighbours of the same chunk, so that a larger request finds room again.
  const auto absorb = [&](auto left, auto right) {
    left->second.bytes += right->second.bytes;
    state->pieces.erase(right);
  };
  if (const auto next = std::next(at); next != state->pieces.end() && next->second.is_free &&
                                       next->second.chunk == at->second.chunk) {
    state->free_parts.erase({next->second.bytes, next->first});
    absorb(at, next);
  }
  if (at != state->pieces.begin()) {
    const auto before = std::prev(at);
    if (before->second.is_free && before->second.chunk == at->second.chunk) {
      state->free_parts.erase({before->second.bytes, before->first});
      absorb(before, at);
      at = before;
    }
  }
  list_free(state->free_parts, at->second.bytes, at->first);
  if (at->second.bytes == chunk.bytes()) chunk.free_since = ++state->frees;
}

// What is in use of it.
bool Pool::has_weights_only(const State& state, const Chunk& chunk) {
  std::byte* const begin = chunk.memory.get();
  const auto end = state.pieces.lower_bound(begin + chunk.bytes());
  return std::all_of(state.pieces.find(begin), end, [](const auto& piece) {
    return piece.second.is_free || piece.second.tagged.tag().kind == MemoryKind::weights;
  });
}

PoolUse Pool::use() const {
  const auto state = state_.lock();
  PoolUse use = state->use;
  for (const auto& [bytes, part] : state->free_parts) {
    const Chunk& chunk = state->chunks.at(state->pieces.at(part).chunk);
    if (chunk.bytes() == bytes) continue;
    use.beside_small += bytes;
    if (has_weights_only(*state, chunk)) use.beside_weights += bytes;
  }
  return use;
}

bool Pool::has_free_chunks() const {
  const auto state = state_.lock();
  if (!state->free_chunks.empty()) return true;
  return std::ranges::any_of(state->free_parts, [&](const auto& part) {
    return state->chunks.at(state->pieces.at(part.second).chunk).bytes() == part.first;
  });
}

void Pool::trim(std::uint64_t until) {
  const auto state = state_.lock();
  for (auto chunk = state->chunks.begin(); chunk != state->chunks.end();) {
    const Piece& piece = state->pieces.at(chunk->second.memory.get());
    const auto next = std::next(chunk);
    if (piece.is_free && piece.bytes == chunk->second.bytes() && chunk->second.free_since <= until)
      release(*state, chunk);
    chunk = next;
  }
}

void Pool::release(State& state, std::map<std::size_t, Chunk>::iterator chunk) {
  std::byte* const memory = chunk->second.memory.get();
  const std::uint64_t bytes = chunk->second.bytes();
  (chunk->second.is_shared ? state.free_parts : state.free_chunks).erase({bytes, memory});
  state.pieces.erase(memory);
  state.use.reserved -= bytes;
  state.chunks.erase(chunk);
}

}  // namespace heddle::engine
