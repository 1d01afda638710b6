// plugins/vae/piece_configs.h - configurations of the stages of a side of an autoencoder that goes
// through videos by pieces: piece ("first", "next", "last", "only": of a video of one piece), stage
// (int). Any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>

namespace heddle::vae {

// A stage, and whether its piece is the first one of a video, and the last one.
struct VaePiece {
  std::int64_t stage = 0;
  bool begins = true, ends = true;
};

// What a configuration asks for; none: the whole side. Throws for a stage below 0.
std::optional<VaePiece> asked_piece(const Checkpoint& file, const Value& config);

// Those of so many stages, the setting piece_configs: a list, of each stage a record by kinds of
// pieces.
Value piece_configs(const Value& config, std::int64_t stages);

}  // namespace heddle::vae
