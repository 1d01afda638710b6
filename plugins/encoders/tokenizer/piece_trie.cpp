#include "piece_trie.h"

#include <algorithm>
#include <deque>

namespace heddle::text {

PieceTrie::PieceTrie(std::vector<Entry> entries) : nodes_(1) {
  std::erase_if(entries, [](const Entry& entry) { return entry.key.empty(); });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.key < b.key; });
  struct Range {
    std::uint32_t node;
    std::size_t begin, end;  // of `entries`
    std::size_t depth;       // bytes that all keys of the range share
  };
  std::deque<Range> open{{kRoot, 0, entries.size(), 0}};
  while (!open.empty()) {
    Range range = open.front();
    open.pop_front();
    while (range.begin < range.end && entries[range.begin].key.size() == range.depth) {
      nodes_[range.node].value = entries[range.begin++].value;
    }
    nodes_[range.node].first_child = static_cast<std::uint32_t>(nodes_.size());
    while (range.begin < range.end) {
      const char label = entries[range.begin].key[range.depth];
      std::size_t end = range.begin;
      while (end < range.end && entries[end].key[range.depth] == label) ++end;
      open.push_back(
          {static_cast<std::uint32_t>(nodes_.size()), range.begin, end, range.depth + 1});
      nodes_.push_back({.label = static_cast<unsigned char>(label)});
      ++nodes_[range.node].child_count;
      range.begin = end;
    }
  }
}

std::uint32_t PieceTrie::child(std::uint32_t node, unsigned char byte) const {
  const auto first = nodes_.begin() + nodes_[node].first_child;
  const auto last = first + nodes_[node].child_count;
  const auto found = std::lower_bound(
      first, last, byte, [](const Node& one, unsigned char label) { return one.label < label; });
  if (found == last || found->label != byte) return kNowhere;
  return static_cast<std::uint32_t>(found - nodes_.begin());
}

PieceTrie::Match PieceTrie::longest_prefix(std::string_view text) const {
  Match match;
  std::uint32_t node = kRoot;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<unsigned char>(text[i]));
    if (node == kNowhere) break;
    if (value(node) != kNoValue) match = {i + 1, value(node)};
  }
  return match;
}

}  // namespace heddle::text
