#include "engine/program/shadow_memory.h"

#include <algorithm>

#include "engine/base/text.h"

namespace heddle::engine {

ShadowMemory::Map::iterator ShadowMemory::cut(std::uint64_t at) {
  const auto behind = pieces_.lower_bound(at);
  if (behind == pieces_.begin()) return behind;
  const auto before = std::prev(behind);
  if (before->second.end <= at) return behind;
  MemoryKind rest = before->second;
  rest.from += at - before->first;
  before->second.end = at;
  return pieces_.emplace_hint(behind, at, std::move(rest));
}

std::string ShadowMemory::read(std::uint64_t begin, std::uint64_t end, const Access& by,
                               std::vector<Piece>* found) {
  cut(end);
  std::uint64_t at = begin;
  for (auto it = cut(begin); at < end; ++it) {
    if (it == pieces_.end() || it->first != at) return cat("byte ", at, " was never written");
    MemoryKind& held = it->second;
    if (held.storage != by.storage)
      return held.storage < 0 ? cat("byte ", at, " holds nothing")
                              : cat("byte ", at, " was overwritten by storage ", held.storage);
    if (!is_before(held.writer, by.known))
      return cat("byte ", at, " is read without waiting for who writes it");
    std::erase_if(held.readers, [&](const Moment& r) { return is_before(r, by.known); });
    held.readers.push_back(by.moment);
    if (found != nullptr) found->push_back({it->first, held.end, held.content, held.from});
    at = held.end;
  }
  return "";
}

std::string ShadowMemory::write(const Piece& piece, const Access& by) {
  if (piece.begin == piece.end) return "";  // a piece of no bytes would stand in the next one's way
  cut(piece.end);
  auto it = cut(piece.begin);
  while (it != pieces_.end() && it->first < piece.end) {
    const MemoryKind& held = it->second;
    if (!is_before(held.writer, by.known))
      return cat("byte ", it->first, " is written without waiting for who wrote it before");
    for (const Moment& reader : held.readers)
      if (!is_before(reader, by.known))
        return cat("byte ", it->first, " is written while storage ", held.storage,
                   " is still read there");
    it = pieces_.erase(it);
  }
  pieces_.emplace_hint(it, piece.begin,
                       MemoryKind{piece.end, by.storage, by.moment, piece.content, piece.from, {}});
  return "";
}

}  // namespace heddle::engine
