// How many hold each unit (byte, page) of a long line of them, such as a file: neighbours share the
// page at their border, and what is counted has to be each page once. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace heddle::engine {

class RangeCounts {
 public:
  struct Range {
    std::uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };

  // Where one of these throws, for lack of memory, nothing has changed.
  // One holder more of [begin, end). Gives back, in order, what had none before.
  std::vector<Range> add(std::uint64_t begin, std::uint64_t end);
  // One holder less, of a range that was added. Gives back what has none any more.
  std::vector<Range> remove(std::uint64_t begin, std::uint64_t end);
  // As add(), but only what has no holder gets one.
  std::vector<Range> fill(std::uint64_t begin, std::uint64_t end);
  // How many units of [begin, end) have no holder.
  std::uint64_t missing(std::uint64_t begin, std::uint64_t end) const;
  bool empty() const { return counts_.empty(); }

  static std::uint64_t length(const std::vector<Range>& ranges);

 private:
  using Counts = std::map<std::uint64_t, std::uint64_t>;
  template <class Change>
  std::vector<Range> change(std::uint64_t begin, std::uint64_t end, Change&& change);
  Counts::iterator split(std::uint64_t at);

  Counts counts_;  // the count from here to the next key; before the first key it is 0
};

}  // namespace heddle::engine
