#include "piece_trie.h"

#include <algorithm>
#include <deque>

namespace heddle::text {

namespace {

// The first bytes of a key as a number that sorts as they do.
std::uint64_t head_of(std::string_view key) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < sizeof head; ++i)
    head = head << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
  return head;
}

// By their keys, and equal ones as they stood. Most keys differ in their heads: few texts have to
// be fetched from where they lie.
std::vector<PieceTrie::Entry> sorted(const std::vector<PieceTrie::Entry>& entries) {
  struct Place {
    std::uint64_t head;
    std::size_t at;
  };
  std::vector<Place> places;
  places.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].key.empty()) places.push_back({head_of(entries[i].key), i});
  std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = entries[a.at].key.compare(entries[b.at].key);
    return order != 0 ? order < 0 : a.at < b.at;
  });
  std::vector<PieceTrie::Entry> result;
  result.reserve(places.size());
  for (const Place& place : places) result.push_back(entries[place.at]);
  return result;
}

}  // namespace

PieceTrie::PieceTrie(const std::vector<Entry>& unsorted) : nodes_(1) {
  const std::vector<Entry> entries = sorted(unsorted);
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
