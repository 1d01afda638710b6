// What a causal model's layers made of the frames of a video that are drawn: keys and values of
// their tokens, which it is given while it draws the frames behind them. The model says that it
// keeps them (setting "keeps_frames"; inputs and outputs "kept..."). One call's thread, but for
// what is told before a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attention_pairs.h"
#include "guide.h"
#include "state_archive.h"
#include "stretches.h"

namespace heddle::samplers {

bool keeps_frames(const Value& model);

// Throws: a video is not drawn block by block together with `what`.
[[noreturn]] void refuse_frames_with(const std::string& what);

// What such a model reads besides, for `items` videos whose frames before have so many tokens.
Constants kept_frame_shapes(const Value& model, std::int64_t items, std::int64_t tokens);

class FrameCache {
 public:
  // items: of the batch. Throws where a model of the plan keeps no frames, or is seen in a way that
  // does not go together with this.
  FrameCache(Context& ctx, const GuidePlan& plan, std::int64_t items);

  // The constants of a set with what is kept for it. Throws where nothing is, though there are
  // frames before: it did not count when the model looked at them.
  Value constants(const Value& model, const ModelSet& set, const Value& whole) const;

  // The next evaluation is of frames without noise: what it makes is to be kept.
  void look_at_frames() { looks_ = true; }
  // Of an evaluation: what the model made for a set.
  void made(const ModelSet& set, const Value& outputs);
  // Puts that behind what is kept. Sessions that were given this are closed.
  void grow();

  void archive(StateArchive& state);

 private:
  // Of a set, whatever weights it was seen under.
  struct Kept {
    std::size_t list = 0, item = 0;
    std::vector<std::pair<std::string, Tensor>> tensors = {};  // (B, P, width)
  };
  static Kept* find(std::vector<Kept>& all, const ModelSet& set);

  Context& ctx_;
  const std::int64_t items_;
  bool looks_ = false;       // at the next evaluation
  bool has_looked_ = false;  // at frames before
  std::vector<Kept> kept_, fresh_;
};

}  // namespace heddle::samplers
