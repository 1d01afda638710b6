#include "engine/program/call_placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::engine {

std::string_view parallel_name(ParallelMode mode) {
  switch (mode) {
    case ParallelMode::layers:
      return "layers";
    case ParallelMode::cfg:
      return "cfg";
    case ParallelMode::data:
      return "data";
    case ParallelMode::sequence:
      return "sequence";
    case ParallelMode::tensor:
      return "tensor";
    case ParallelMode::none:
      break;
  }
  return "none";
}

std::vector<std::int64_t> shard_sizes(std::int64_t total, const std::vector<double>& fractions) {
  const double whole = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  std::vector<std::int64_t> parts;
  std::vector<double> remainders;
  for (const double fraction : fractions) {
    const double exact = double(total) * fraction / whole;
    parts.push_back(std::int64_t(std::floor(exact)));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<std::size_t> order(fractions.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  std::int64_t left = total - std::accumulate(parts.begin(), parts.end(), std::int64_t(0));
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++parts[order[i]];
  return parts;
}

}  // namespace heddle::engine
