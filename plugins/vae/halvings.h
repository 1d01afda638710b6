// How large a cell of a latent is, by how often a file's model halves the sides of pictures. Any
// thread.
#pragma once

#include <heddle/model.hpp>

#include <string>

namespace heddle::vae {

// Published models halve pictures at most 5 times.
inline constexpr std::int64_t kMostHalvings = 16;

// Pixels along a side: 2^halvings. Throws where there are more halvings than that, with the file:
// its names alone say how many there are.
inline std::int64_t cell_side(const Checkpoint& file, std::int64_t halvings) {
  if (halvings <= kMostHalvings) return std::int64_t{1} << halvings;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              file.path() + ": an autoencoder that halves the sides of pictures " +
                  std::to_string(halvings) + " times, of at most " + std::to_string(kMostHalvings) +
                  ". The file is damaged or of another model.");
}

}  // namespace heddle::vae
