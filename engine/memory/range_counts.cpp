#include "engine/memory/range_counts.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace heddle::engine {

namespace {

void append(std::vector<RangeCounts::Range>& ranges, std::uint64_t begin, std::uint64_t end) {
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = end;
  } else {
    ranges.push_back({begin, end});
  }
}

}  // namespace

RangeCounts::Counts::iterator RangeCounts::split(std::uint64_t at) {
  const auto next = counts_.upper_bound(at);
  const std::uint64_t count = next == counts_.begin() ? 0 : std::prev(next)->second;
  return counts_.emplace(at, count).first;
}

// change(count) -> the new count and whether the span is to be reported.
template <class Change>
std::vector<RangeCounts::Range> RangeCounts::change(std::uint64_t begin, std::uint64_t end,
                                                    Change&& change) {
  std::vector<Range> ranges;
  if (begin >= end) return ranges;
  const auto first = split(begin);
  const auto last = split(end);
  // From here on nothing can fail: what is half counted would never come right again.
  ranges.reserve(static_cast<std::size_t>(std::distance(first, last)));
  for (auto at = first; at != last; ++at) {
    const auto [count, is_reported] = change(at->second);
    at->second = count;
    if (is_reported) append(ranges, at->first, std::next(at)->first);
  }
  // Stretches that have become alike are one.
  std::uint64_t before = first == counts_.begin() ? 0 : std::prev(first)->second;
  for (auto at = first;;) {
    const bool is_last = at == last;
    const std::uint64_t count = at->second;
    at = count == before ? counts_.erase(at) : std::next(at);
    before = count;
    if (is_last) break;
  }
  return ranges;
}

std::vector<RangeCounts::Range> RangeCounts::add(std::uint64_t begin, std::uint64_t end) {
  return change(begin, end, [](std::uint64_t count) { return std::pair(count + 1, count == 0); });
}

std::vector<RangeCounts::Range> RangeCounts::remove(std::uint64_t begin, std::uint64_t end) {
  return change(begin, end, [](std::uint64_t count) { return std::pair(count - 1, count == 1); });
}

std::vector<RangeCounts::Range> RangeCounts::fill(std::uint64_t begin, std::uint64_t end) {
  return change(begin, end, [](std::uint64_t count) {
    return std::pair(std::max<std::uint64_t>(count, 1), count == 0);
  });
}

std::uint64_t RangeCounts::missing(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t units = 0;
  auto next = counts_.upper_bound(begin);
  std::uint64_t count = next == counts_.begin() ? 0 : std::prev(next)->second;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t stop = next == counts_.end() ? end : std::min(next->first, end);
    if (count == 0) units += stop - at;
    at = stop;
    if (next != counts_.end()) {
      count = next->second;
      ++next;
    }
  }
  return units;
}

std::uint64_t RangeCounts::length(const std::vector<Range>& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Range& r) { return sum + r.end - r.begin; });
}

}  // namespace heddle::engine
