#include "plugins/vae/piece_turns.h"

#include <algorithm>
#include <limits>

#include <heddle/model.hpp>
#include <heddle/session.hpp>

namespace heddle::vae {
namespace {

// Of a call that begins a video and does not end it.
std::int64_t made_at_first(const PieceStage& stage) {
  return PieceTurn{true, false, stage.first}.made(stage);
}

class PieceWalk {
 public:
  PieceWalk(const std::vector<PieceStage>& stages, std::int64_t frames)
      : stages_(stages),
        has_begun_(stages.size()),
        left_(stages.size(), std::numeric_limits<std::int64_t>::max()) {
    for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
      frames = PieceTurn{true, true, frames}.made(stages[s]) - stages[s].cut;
      if (stages[s].cut > 0) left_[s + 1] = frames;
    }
  }

  // The frames of one call of the stage before, all of which are taken but those that are cut.
  void take(std::size_t number, std::int64_t frames, bool is_end) {
    const PieceStage& stage = stages_[number];
    frames = std::min(frames, left_[number]);
    is_end = is_end || frames == left_[number];
    left_[number] -= frames;
    for (std::int64_t at = 0; at < frames;) {
      PieceTurn turn;
      turn.begins = !has_begun_[number];
      turn.frames = std::min(turn.begins ? stage.first : stage.piece, frames - at);
      turn.ends = is_end && at + turn.frames == frames;
      has_begun_[number] = true;
      round_.push_back({number, turn, at});
      at += turn.frames;
      if (number + 1 < stages_.size()) {
        take(number + 1, turn.made(stage), turn.ends);
      } else {
        rounds.push_back(std::move(round_));
        round_.clear();
      }
    }
  }

  std::vector<PieceRound> rounds;

 private:
  const std::vector<PieceStage>& stages_;
  std::vector<bool> has_begun_;
  std::vector<std::int64_t>
      left_;  // by stage: frames that it has still to take, where some are cut
  PieceRound round_;
};

}  // namespace

std::int64_t PieceTurn::made(const PieceStage& stage) const {
  const std::int64_t late = begins == ends ? 0
                            : begins       ? -stage.lag
                                           : stage.lag,
                     whole = frames + late;
  if (stage.fewer > 1) return begins ? (whole - 1) / stage.fewer + 1 : whole / stage.fewer;
  return stage.more * whole - (begins ? stage.more - 1 : 0);
}

const char* PieceTurn::kind() const {
  return begins ? (ends ? "only" : "first") : ends ? "last" : "next";
}

// A stage needs some frames more than it is late, and as many as make all that the next one needs;
// that one takes all that comes of these.
void set_first_turns(std::vector<PieceStage>& stages) {
  std::int64_t wanted = 1;
  for (std::size_t s = stages.size(); s-- > 0;) {
    PieceStage& stage = stages[s];
    const std::int64_t whole = stage.fewer > 1 ? (wanted - 1) * stage.fewer + 1
                                               : (wanted + 2 * (stage.more - 1)) / stage.more;
    wanted = stage.first = stage.lag + std::max(stage.least, whole);
  }
  for (std::size_t s = 1; s < stages.size(); ++s) stages[s].first = made_at_first(stages[s - 1]);
}

std::vector<PieceStage> piece_stages(const Value& pieces, std::int64_t cell) {
  std::vector<PieceStage> stages;
  std::int64_t piece = cell;
  for (std::uint32_t s = 0; s < pieces.count(); ++s) {
    const Value told = model_settings(pieces.item(s).field("first")).field("piece");
    PieceStage stage;
    stage.lag = told.get<std::int64_t>("lag", 0);
    stage.more = std::max<std::int64_t>(1, told.get<std::int64_t>("more", 1));
    stage.fewer = std::max<std::int64_t>(1, told.get<std::int64_t>("fewer", 1));
    stage.least = std::max<std::int64_t>(1, told.get<std::int64_t>("least", 1));
    stage.cut = told.get<std::int64_t>("cut", 0);
    stage.piece = piece;
    piece = std::max<std::int64_t>(1, piece * stage.more / stage.fewer);
    stages.push_back(stage);
  }
  set_first_turns(stages);
  return stages;
}

std::vector<PieceRound> piece_rounds(const std::vector<PieceStage>& stages, std::int64_t frames) {
  PieceWalk walk(stages, frames);
  if (!stages.empty()) walk.take(0, frames, true);
  return std::move(walk.rounds);
}

}  // namespace heddle::vae
