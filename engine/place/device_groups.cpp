#include "engine/place/device_groups.h"

#include <algorithm>
#include <optional>
#include <span>

#include "engine/place/device_choice.h"

namespace heddle::engine {

namespace {

// From two up to `most`.
std::vector<std::size_t> shares_to_try(bool divided, std::size_t most, bool all) {
  if (!divided) return {1};
  if (!all) return counts_of_devices(most);
  std::vector<std::size_t> every;
  for (std::size_t n = 2; n <= most; ++n) every.push_back(n);
  return every;
}

class Grouping {
 public:
  Grouping(const std::vector<std::uint32_t>& devices, const GroupSizes& sizes, const Prices& prices)
      : all_(devices), left_(devices), sizes_(sizes), prices_(prices) {}

  std::vector<std::uint32_t> run() {
    for (std::uint32_t i = 0; i < sizes_.devices(); ++i) {
      const std::optional<std::uint32_t> next = best_next();
      if (!next) return {};
      chosen_.push_back(*next);
      std::erase(left_, *next);
    }
    return std::move(chosen_);
  }

 private:
  bool are_alike(std::uint32_t a, std::uint32_t b) const {
    const std::vector<DeviceFacts>& facts = prices_.topology().devices;
    return alike(facts[a], facts[b]);
  }

  // Every group gets one like it.
  bool is_in_every_group(std::uint32_t device) const {
    const auto like_it = [&](std::uint32_t other) { return are_alike(device, other); };
    return std::ranges::count_if(all_, like_it) >=
           std::ptrdiff_t(sizes_.groups()) * (1 + std::ranges::count_if(chosen_, like_it));
  }

  std::optional<std::uint32_t> best_next() const {
    const std::size_t group = chosen_.size() / sizes_.ranks, rank = chosen_.size() % sizes_.ranks;
    const std::span members = std::span(chosen_).subspan(group * sizes_.ranks);
    std::optional<std::uint32_t> best;
    double best_rate = 0;
    for (const std::uint32_t d : left_) {
      if (group == 0 ? !is_in_every_group(d) : !are_alike(chosen_[rank], d)) continue;
      double rate = 0;
      for (const std::uint32_t m : members) {
        const double both = std::min(prices_.copy_rate(m, d).bytes_per_second,
                                     prices_.copy_rate(d, m).bytes_per_second);
        rate = m == members.front() ? both : std::min(rate, both);
      }
      if (best && rate <= best_rate) continue;
      best = d;
      best_rate = rate;
    }
    return best;
  }

  const std::vector<std::uint32_t>& all_;
  std::vector<std::uint32_t> left_, chosen_;
  const GroupSizes sizes_;
  const Prices& prices_;
};

}  // namespace

std::vector<GroupSizes> group_sizes(ParallelMode mode, std::size_t devices, bool all,
                                    const CallShares& shares) {
  std::vector<std::size_t> of_sets{1};
  if (has(mode, ParallelMode::cfg)) {
    of_sets = {2};
    if (const std::size_t most = std::min(devices, shares.sets); most > 2) of_sets.push_back(most);
  }
  std::vector<GroupSizes> sizes;
  for (const std::size_t sets : of_sets)
    for (const std::size_t items : shares_to_try(
             has(mode, ParallelMode::data),
             std::min(devices / sets, std::size_t(std::max<std::int64_t>(shares.items, 0))), all))
      for (const std::size_t ranks :
           shares_to_try(has(mode, kOverRanks), devices / (sets * items), all))
        if (const std::size_t used = sets * items * ranks; all ? used == devices : used <= devices)
          sizes.push_back({std::uint32_t(sets), std::uint32_t(items), std::uint32_t(ranks)});
  std::ranges::stable_sort(sizes, {}, &GroupSizes::devices);
  return sizes;
}

bool share_memory(const std::vector<std::uint32_t>& devices, const Topology& topology) {
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (std::size_t j = i + 1; j < devices.size(); ++j)
      if (topology.link(devices[i], devices[j]).kind == LinkFacts::Kind::same) return true;
  return false;
}

std::vector<std::uint32_t> grouped_devices(const std::vector<std::uint32_t>& devices,
                                           const GroupSizes& sizes, const Prices& prices) {
  return Grouping(devices, sizes, prices).run();
}

}  // namespace heddle::engine
