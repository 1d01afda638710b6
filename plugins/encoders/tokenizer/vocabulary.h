// A map from piece to id. Immutable once filled, any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace heddle::text {

class Vocabulary {
 public:
  void reserve(std::size_t count) { ids_.reserve(count); }

  // A piece that is there already gets the new id.
  void add(std::string_view piece, std::int32_t id) {
    ids_.insert_or_assign(std::string(piece), id);
    max_id_ = std::max(max_id_, id);
  }

  std::optional<std::int32_t> find(std::string_view piece) const {
    const auto found = ids_.find(piece);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  std::size_t size() const { return ids_.size(); }
  std::int32_t max_id() const { return max_id_; }  // -1: empty

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::int32_t max_id_ = -1;
};

// The piece that byte fallback writes for a byte: "<0x0A>".
std::string byte_piece(unsigned char byte);

}  // namespace heddle::text
