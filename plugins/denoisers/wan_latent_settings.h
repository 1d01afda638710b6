// plugins/denoisers/wan_latent_settings.h - what models over the latents of Wan 2.1's autoencoder
// tell of these. Any thread.
#pragma once

#include <heddle/model.hpp>

#include <span>
#include <vector>

#include "plugins/blocks/wan_latents.h"

namespace heddle::denoisers {

// Mean and deviation of each channel, where there are as many as that autoencoder has.
inline void add_wan_latents(std::int64_t channels, Blocks& graph) {
  if (channels != std::int64_t(std::size(blocks::kWanLatentMeans))) return;
  const auto listed = [](std::span<const double> numbers) {
    std::vector<Value> items;
    for (const double number : numbers) items.push_back(value_of(number));
    return list_of(items);
  };
  graph.setting("latent_means", listed(blocks::kWanLatentMeans));
  graph.setting("latent_deviations", listed(blocks::kWanLatentDeviations));
}

}  // namespace heddle::denoisers
