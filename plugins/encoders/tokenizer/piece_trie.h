// A trie over byte strings, packed: the children of a node lie side by side in order of their
// label. Built once, immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::text {

class PieceTrie {
 public:
  static constexpr std::int32_t kNoValue = -1;
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  struct Entry {
    std::string_view key;  // only read while building; empty keys are ignored
    std::int32_t value;    // not negative
  };

  PieceTrie() : nodes_(1) {}

  // Of equal keys the last one counts.
  explicit PieceTrie(const std::vector<Entry>& unsorted);

  // The child of `node` by `byte`, or kNowhere.
  std::uint32_t child(std::uint32_t node, unsigned char byte) const;

  // kNoValue when no key ends at `node`.
  std::int32_t value(std::uint32_t node) const { return nodes_[node].value; }

  struct Match {
    std::size_t length = 0;  // bytes, 0: none
    std::int32_t value = kNoValue;
  };

  // The longest key that `text` starts with.
  Match longest_prefix(std::string_view text) const;

 private:
  struct Node {
    std::uint32_t first_child = 0;
    std::uint16_t child_count = 0;
    unsigned char label = 0;
    std::int32_t value = kNoValue;
  };
  std::vector<Node> nodes_;
};

}  // namespace heddle::text
