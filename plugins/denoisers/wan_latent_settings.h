// plugins/denoisers/wan_latent_settings.h - what models over the latents of the causal
// autoencoders, of Wan 2.1 and Qwen-Image 2.1, tell of these. Any thread.
#pragma once

#include <heddle/model.hpp>

#include <span>
#include <vector>

#include "plugins/blocks/wan_latents.h"

namespace heddle::denoisers {

// Mean and deviation of each channel, where there are as many as one of these autoencoders has.
inline void add_wan_latents(std::int64_t channels, Blocks& graph) {
  const blocks::LatentStatistics known = blocks::published_statistics(channels);
  if (known.means.empty()) return;
  const auto listed = [](std::span<const double> numbers) {
    std::vector<Value> items;
    for (const double number : numbers) items.push_back(value_of(number));
    return list_of(items);
  };
  graph.setting("latent_means", listed(known.means));
  graph.setting("latent_deviations", listed(known.deviations));
}

}  // namespace heddle::denoisers
