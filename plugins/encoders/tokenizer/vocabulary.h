// A map from piece to id. Immutable once filled, any thread.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::text {

class Vocabulary {
 public:
  void reserve(std::size_t count) { ids_.reserve(count); }

  // A piece that is there already gets the new id. Gives the piece as it is kept here, which lives
  // as long as this, and what this is moved to.
  std::string_view add(std::string_view piece, std::int32_t id) {
    const auto [found, is_new] = ids_.try_emplace(keep(piece), id);
    if (!is_new) found->second = id;
    max_id_ = std::max(max_id_, id);
    return found->first;
  }

  std::optional<std::int32_t> find(std::string_view piece) const {
    const auto found = ids_.find(piece);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  // Every piece with its id, in no order.
  template <class Found>
  void each(Found&& found) const {
    for (const auto& [piece, id] : ids_) found(piece, id);
  }

  std::size_t size() const { return ids_.size(); }
  std::int32_t max_id() const { return max_id_; }  // -1: empty

 private:
  static constexpr std::size_t kChunk = 64 << 10;

  std::string_view keep(std::string_view piece) {
    if (piece.empty()) return {};
    auto* const to = static_cast<char*>(texts_->allocate(piece.size(), 1));
    std::memcpy(to, piece.data(), piece.size());
    return {to, piece.size()};
  }

  // All pieces in a few chunks: one allocation each would be most of the time to open a tokenizer.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> texts_ =
      std::make_unique<std::pmr::monotonic_buffer_resource>(kChunk);
  boost::unordered_flat_map<std::string_view, std::int32_t, std::hash<std::string_view>> ids_;
  std::int32_t max_id_ = -1;
};

// The piece that byte fallback writes for a byte: "<0x0A>".
std::string byte_piece(unsigned char byte);

}  // namespace heddle::text
