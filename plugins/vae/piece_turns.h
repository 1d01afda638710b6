// plugins/vae/piece_turns.h - when stages of pieces of videos are called, and with which frames
// (video_pieces.h). A stage may make its frames some of its input late, so it takes more of them at
// its first call, and makes more at its last one, which the next stage then takes piece by piece.
// No call takes frames of two calls of the stage before: what it reads is a view of what one made.
// Pure; any thread.
#pragma once

#include <heddle/node.hpp>

#include <cstddef>
#include <vector>

namespace heddle::vae {

// What a stage does to the number of frames.
struct PieceStage {
  std::int64_t lag = 0;              // frames of its input that it makes its frames late
  std::int64_t more = 1, fewer = 1;  // frames that it makes of one, or one of how many
  std::int64_t least = 1;            // frames that it has to make of, before `more`, at first
  std::int64_t cut = 0;    // of what it makes of a video the last ones, which nobody takes
  std::int64_t piece = 1;  // frames that it takes at a time
  std::int64_t first = 1;  // that it takes at first, where there are as many
};

// One call of a stage.
struct PieceTurn {
  bool begins = false, ends = false;
  std::int64_t frames = 0;  // that it takes
  std::int64_t made(const PieceStage& stage) const;
  // Which of a stage's models: "first", "next", "last" or "only".
  const char* kind() const;
};

struct PieceCall {
  std::size_t stage = 0;
  PieceTurn turn;
  // The first frame that it takes of what the stage before made at its last call, or of the video.
  std::int64_t begin = 0;
};

// Calls of consecutive stages, the last one at the end: what follows from the first one's piece.
// It begins with the first stage but at the end of a video, where later ones have still to do.
using PieceRound = std::vector<PieceCall>;

// The stages of a side; `cell`: frames of a video for each later one of the latent, of an encoder,
// else 1.
std::vector<PieceStage> piece_stages(const Value& pieces, std::int64_t cell);
// The first calls of `stages`, by what they do to the number of frames.
void set_first_turns(std::vector<PieceStage>& stages);

// All calls for a video of so many frames, of an encoder pictures.
std::vector<PieceRound> piece_rounds(const std::vector<PieceStage>& stages, std::int64_t frames);

}  // namespace heddle::vae
