// plugins/blocks/playground_latents.h - what the latents of Playground v2.5 are: statistics of each
// channel and how it looks, which a model's file tells or the node that makes one of an SDXL. Pure;
// any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <heddle/value.hpp>

namespace heddle::blocks {

// Of each channel of the autoencoder's latents, which the model reads with half a deviation: the
// config of the published autoencoder (latents_mean, latents_std, scaling_factor).
inline constexpr double kPlaygroundMeans[] = {-1.6574, 1.886, -1.383, 2.5155};
inline constexpr double kPlaygroundDeviations[] = {8.4927 / 0.5, 5.9022 / 0.5, 6.5498 / 0.5,
                                                   5.2299 / 0.5};

// Red, green and blue of each channel, from -1 to 1, and what is added to all: the constants of
// ComfyUI's latent format.
inline constexpr double kPlaygroundColours[] = {0.392,   0.4054,  0.4549, -0.2634, -0.0196,
                                                0.0653,  0.0568,  0.1687, -0.0755, -0.3112,
                                                -0.2359, -0.2076, 0,      0,       0};

inline Value listed(std::span<const double> numbers) {
  std::vector<Value> items;
  for (const double number : numbers) items.push_back(value_of(number));
  return list_of(items);
}

// The setting "preview_factors" (heddle/diffusion/values.h) of such colours, three a row.
inline Value colour_rows(std::span<const double> colours) {
  std::vector<Value> rows;
  for (std::size_t i = 0; i + 3 <= colours.size(); i += 3) {
    const bool is_last = i + 3 == colours.size();
    std::vector<Value> row;
    for (std::size_t c = 0; c < 3; ++c)
      row.push_back(value_of((colours[i + c] + (is_last ? 1 : 0)) / 2));
    rows.push_back(list_of(row));
  }
  return list_of(rows);
}

}  // namespace heddle::blocks
