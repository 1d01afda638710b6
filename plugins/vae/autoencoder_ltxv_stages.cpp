// How a side of LTX-Video's autoencoder is cut into stages, and what these read and keep.
#include <algorithm>

#include <heddle/abi/stages.h>

#include "autoencoder_ltxv_builder.h"
#include "halvings.h"

namespace heddle::vae {
namespace {

// Where sides are at least so many times a cell's, of 8, a residual block is a stage by itself: it
// takes most of the time. So many stages at most.
constexpr std::int64_t kLargeSides = 4, kMostSplitStages = 48;

}  // namespace

void LtxvVaeBuilder::add_piece_settings() {
  if (piece_->stage > stage_)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": there is no stage " + std::to_string(piece_->stage) +
                    " of this autoencoder, it has " + std::to_string(stages()));
  // Sides of what an encoder reads are told by what it divides them by until there.
  const std::int64_t whole = is_decoder_ ? 1 : sides_;
  Record shapes;
  for (const Shaped& one : shapes_) {
    const bool is_pixels = one.side == 0;
    const std::int64_t side = is_pixels ? downscale() : is_decoder_ ? one.side : whole / one.side;
    shapes.set(one.name, list_of({value_of(one.frames), value_of(side), value_of(one.channels)}));
  }
  const std::int64_t axis = piece_->stage > 0 ? kLtxvFramesOfHidden
                            : is_decoder_     ? kLtxvFramesOfZ
                                              : kLtxvFramesOfImage;
  graph_.setting("piece", Record()
                              .set("lag", value_of(lag_))
                              .set("more", value_of(more_))
                              .set("fewer", value_of(fewer_))
                              .set("axis", value_of(axis))
                              .set("shapes", shapes.value())
                              .value());
  graph_.setting("noise_inputs", list_of(drawn_));
  graph_.setting(HEDDLE_ROUND_STAGE, piece_->stage);
  graph_.setting(HEDDLE_ROUND_INPUT, shapes_.front().name);
}

Source LtxvVaeBuilder::noise_input(const std::string& name) {
  drawn_.push_back(value_of(name));
  return graph_.input(input_names_.emplace_back(name).c_str(),
                      HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
}

// Pictures have another side than cells: 0 stands for theirs.
Source LtxvVaeBuilder::input(const std::string& name, std::int64_t axis, std::int64_t frames) {
  const bool is_pixels = axis == kLtxvFramesOfImage;
  shapes_.push_back({name, frames, is_pixels ? 0 : sides_, channels_});
  return graph_.input(input_names_.emplace_back(name).c_str(), HEDDLE_INPUT_LOOP_INVARIANT);
}

void LtxvVaeBuilder::begin_stage() { hidden_ = input("hidden", kLtxvFramesOfHidden); }

// What a convolution reads of the running output. more: copies of the first frame of a video
// besides those that it reads; keep: frames that the next piece reads.
Source LtxvVaeBuilder::framed(const Source& of, std::int64_t axis, std::int64_t more,
                              std::int64_t keep) {
  if (!piece_) return of;
  using B = LtxvVaeFrames;
  const std::string name = "kept." + std::to_string(kept_++);
  Block block = graph_.add<B>("frames." + std::to_string(kept_));
  block.link(B::piece, of).set(B::axis, axis).set(B::keep, keep);
  block.set(B::before, more + (is_causal_ ? 2 : 1));
  block.set(B::behind, std::int64_t{piece_->ends && !is_causal_ ? 1 : 0});
  if (continues()) block.link(B::kept, input(name, axis, keep));
  graph_.output(input_names_.emplace_back(name).c_str(), block[B::keeps]);
  if (!is_causal_) ++lag_;
  return block[B::out];
}

// Of a residual block: the frame of its framed input that the first one it makes belongs to. Two
// convolutions are between them.
std::int64_t LtxvVaeBuilder::own_from() const { return is_causal_ ? 2 : continues() ? 0 : 1; }

// Before a residual block: a stage of its own, where it is not the first of one.
void LtxvVaeBuilder::split() {
  const bool is_large = is_decoder_ ? sides_ >= kLargeSides : sides_ * kLargeSides <= 8;
  if (is_large && has_resnet_ && stage_ < kMostSplitStages) end_stage();
  has_resnet_ = true;
}

void LtxvVaeBuilder::end_stage() {
  if (piece_ && is_here()) graph_.output("hidden", hidden_);
  ++stage_;
  has_resnet_ = false;
  has_noise_ = has_noise_ && !piece_;
  if (piece_ && is_here()) begin_stage();
}

void LtxvVaeBuilder::finish(const LtxvResample& change) {
  if (is_here()) (is_decoder_ ? more_ : fewer_) *= change.frames;
  channels_ = change.channels;
  frames_ *= change.frames;
  sides_ *= change.side;
  ++changes_;
  // Names alone say how many of these there are.
  if (std::max(frames_, sides_) > std::int64_t{1} << kMostHalvings || changes_ > 2 * kMostHalvings)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": an autoencoder that changes the size of videos " +
                    std::to_string(changes_) + " times, of at most " +
                    std::to_string(kMostHalvings) +
                    " along an axis. The file is damaged or of another model.");
  has_noise_ = has_noise_ && change.side == 1;
  end_stage();
}

}  // namespace heddle::vae
