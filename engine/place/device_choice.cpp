#include "engine/place/device_choice.h"

#include <algorithm>
#include <numeric>

namespace heddle::engine {

bool alike(const DeviceFacts& a, const DeviceFacts& b) {
  return a.kind == b.kind && a.model == b.model && a.compute == b.compute &&
         usable_bytes(a) == usable_bytes(b);
}

bool all_alike(const std::vector<std::uint32_t>& devices, const Prices& prices) {
  if (devices.size() < 2) return true;
  const std::vector<DeviceFacts>& facts = prices.topology().devices;
  const LinkFacts usual = prices.link(devices[0], devices[1]);
  for (const std::uint32_t from : devices) {
    if (!alike(facts[devices.front()], facts[from])) return false;
    for (const std::uint32_t to : devices) {
      const LinkFacts link = prices.link(from, to);
      if (from != to &&
          (link.kind != usual.kind || link.bytes_per_second != usual.bytes_per_second ||
           link.latency_seconds != usual.latency_seconds))
        return false;
    }
  }
  return true;
}

std::vector<std::size_t> counts_of_devices(std::size_t all) {
  std::vector<std::size_t> counts;
  for (std::size_t n = 2; n <= all; n = n < 4 ? n + 1 : std::min(2 * n, std::max(all, n + 1)))
    counts.push_back(n);
  return counts;
}

std::vector<std::uint32_t> first_devices(const std::vector<std::uint32_t>& devices,
                                         std::size_t count, const Topology& topology) {
  if (count >= devices.size()) return devices;
  std::vector<std::size_t> order(devices.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t(1));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return usable_bytes(topology.devices[devices[a]]) > usable_bytes(topology.devices[devices[b]]);
  });
  order.resize(count - 1);
  std::ranges::sort(order);
  std::vector<std::uint32_t> first{devices.front()};
  for (const std::size_t i : order) first.push_back(devices[i]);
  return first;
}

std::vector<std::uint32_t> distinct_devices(const std::vector<std::uint32_t>& devices,
                                            std::uint32_t home, const Topology& topology) {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t d : devices) {
    const auto as_good = [&](std::uint32_t k) {
      const LinkFacts a = topology.link(home, k), b = topology.link(home, d);
      return k != home && alike(topology.devices[k], topology.devices[d]) && a.kind == b.kind &&
             a.bytes_per_second == b.bytes_per_second;
    };
    if (d == home || std::ranges::none_of(kept, as_good)) kept.push_back(d);
  }
  return kept;
}

}  // namespace heddle::engine
