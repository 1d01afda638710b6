#include "engine/program/call_placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace heddle::engine {

std::string parallel_name(ParallelMode mode) {
  static constexpr std::pair<ParallelMode, std::string_view> kNames[] = {
      {ParallelMode::cfg, "cfg"},
      {ParallelMode::data, "data"},
      {ParallelMode::layers, "layers"},
      {ParallelMode::sequence, "sequence"},
      {ParallelMode::tensor, "tensor"}};
  std::string name;
  for (const auto& [one, text] : kNames) {
    if (!has(mode, one)) continue;
    if (!name.empty()) name += '+';
    name += text;
  }
  return name.empty() ? "none" : name;
}

std::uint32_t CallPlacement::ranks() const {
  if (!has(parallel, kOverRanks)) return 1;
  std::uint32_t groups = item_shares();
  if (has(parallel, ParallelMode::cfg) && !of_set.empty())
    groups *= *std::ranges::max_element(of_set) + 1;
  return std::uint32_t(devices.size()) / groups;
}

std::uint32_t CallPlacement::first_device_of(std::uint32_t set, std::uint32_t item_share) const {
  const std::uint32_t set_share = has(parallel, ParallelMode::cfg) ? of_set[set] : 0;
  return (set_share * item_shares() + item_share) * ranks();
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
