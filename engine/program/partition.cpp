#include "engine/program/partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace heddle::engine {

GroupChain group_chain(const Graph& graph, const CallLoad& load) {
  GroupChain chain;
  const std::size_t groups = load.groups.size();
  chain.before.assign(groups + 1, 0);
  for (const NodeIndex n : graph.order)
    chain.before[load.blocks[n].group + 1] += double(load.blocks[n].weight_bytes);
  // A model without weights is divided by its work.
  if (std::accumulate(chain.before.begin(), chain.before.end(), 0.0) <= 0)
    for (const NodeIndex n : graph.order)
      chain.before[load.blocks[n].group + 1] +=
          (load.set_count > 0 ? load.work(n, 0).flops : 0) + 1;
  std::partial_sum(chain.before.begin(), chain.before.end(), chain.before.begin());
  std::map<Source, GroupChain::Value> values;
  for (const NodeIndex n : graph.order) {
    if (load.blocks[n].phase != load.main) continue;
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
      const bool is_input = link->node == kGraphInputs;
      if (!is_input && load.blocks[link->node].phase != load.main)
        continue;  // brought once, not in every step
      const std::uint32_t made = is_input ? 0 : load.blocks[link->node].group,
                          read = load.blocks[n].group;
      GroupChain::Value& value =
          values.try_emplace(*link, GroupChain::Value{made, made, 0}).first->second;
      value.first = std::min({value.first, made, read});
      value.last = std::max({value.last, made, read});
      if (value.bytes > 0) continue;
      for (std::uint32_t set = 0; set < load.set_count; ++set)
        value.bytes += is_input ? double(load.input_bytes[set][link->port])
                                : double(load.work(link->node, set).output_bytes[link->port]);
    }
  }
  chain.crossing.assign(groups + 2, 0);
  for (const auto& [source, value] : values) {
    chain.values.push_back(value);
    chain.crossing[value.first + 1] += value.bytes;
    chain.crossing[value.last + 1] -= value.bytes;
  }
  std::partial_sum(chain.crossing.begin(), chain.crossing.end(), chain.crossing.begin());
  return chain;
}

std::vector<std::uint32_t> blocks_of_groups(const Graph& graph, const CallLoad& load,
                                            const std::vector<std::uint32_t>& of_group) {
  std::vector<std::uint32_t> of_block(graph.nodes.size(), 0);
  for (const NodeIndex n : graph.order) of_block[n] = of_group[load.blocks[n].group];
  return of_block;
}

namespace {

constexpr double kNearlyEven = 0.05;

// The cut from `begin` to `end` that lies near `target` bytes and costs least; the nearest one when
// none is near.
template <class Price>
std::uint32_t best_cut(const GroupChain& chain, std::uint32_t begin, std::uint32_t end,
                       double target, Price price) {
  const double near = kNearlyEven * chain.before.back();
  std::uint32_t best = begin;
  const auto rank = [&](std::uint32_t cut) {
    const double off = std::abs(chain.before[cut] - target);
    return off <= near ? std::tuple(0, price(cut), off) : std::tuple(1, off, 0.0);
  };
  for (std::uint32_t cut = begin; cut <= end; ++cut)
    if (rank(cut) < rank(best)) best = cut;
  return best;
}

}  // namespace

std::vector<std::uint32_t> partition(const Graph& graph, const CallLoad& load,
                                     const std::vector<double>& fractions) {
  const GroupChain chain = group_chain(graph, load);
  const auto groups = std::uint32_t(load.groups.size());
  const double all = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  std::vector<std::uint32_t> of_group(groups, 0);
  std::uint32_t begin = 0;
  double target = 0;
  for (std::uint32_t d = 0; d < fractions.size(); ++d) {
    target += chain.before.back() * fractions[d] / all;
    const auto later = std::uint32_t(fractions.size() - 1 -
                                     d);  // devices that want a group each, if there are so many
    const std::uint32_t most = groups > later ? std::max(begin, groups - later) : groups,
                        least = std::min(begin + 1, most);
    const std::uint32_t end = d + 1 == fractions.size()
                                  ? groups
                                  : best_cut(chain, least, most, target, [&](std::uint32_t cut) {
                                      return chain.crossing[cut];
                                    });
    for (std::uint32_t g = begin; g < end; ++g) of_group[g] = d;
    begin = end;
  }
  return blocks_of_groups(graph, load, of_group);
}

std::optional<std::vector<std::uint32_t>> partition_folded(const Graph& graph, const CallLoad& load,
                                                           double first_fraction) {
  const GroupChain chain = group_chain(graph, load);
  const auto groups = std::uint32_t(load.groups.size());
  if (groups < 3) return {};
  const double inner = chain.before.back() * (1 - first_fraction);
  struct Best {
    double bytes = 0;
    std::uint32_t begin = 0, end = 0;
  };
  std::optional<Best> best;
  std::uint32_t end = 1;
  for (std::uint32_t begin = 1; begin + 1 < groups; ++begin) {
    end = std::max(end, begin + 1);
    while (end + 1 < groups && chain.before[end] - chain.before[begin] < inner) ++end;
    if (std::abs(chain.before[end] - chain.before[begin] - inner) >
        kNearlyEven * chain.before.back())
      continue;
    double bytes = 0;
    for (const GroupChain::Value& v : chain.values) {
      // Made outside and read inside, or the other way round; a value read on both sides is copied
      // once.
      const bool first_inside = v.first >= begin && v.first < end,
                 last_inside = v.last >= begin && v.last < end;
      if (first_inside != last_inside) bytes += v.bytes;
    }
    if (!best || bytes < best->bytes) best = Best{bytes, begin, end};
  }
  if (!best) return {};
  std::vector<std::uint32_t> of_group(groups, 0);
  std::fill(of_group.begin() + best->begin, of_group.begin() + best->end, 1u);
  return blocks_of_groups(graph, load, of_group);
}

}  // namespace heddle::engine
