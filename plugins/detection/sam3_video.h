// plugins/detection/sam3_video.h - things of a video, found by texts or told by masks and followed
// frame by frame as ComfyUI does it (sam3_follow.h). One call's thread.
#pragma once

#include <map>

#include "plugins/blocks/object_tracks.h"
#include "sam3_follow.h"

namespace heddle::detection {

struct VideoJob {
  std::vector<PromptText> texts;
  std::vector<Floats> masks;  // of the first frame, 0 or 1 in the trunk's size; may be none
  float threshold = 0.5f;
  std::int64_t most = 0, interval = 1;  // most: things, 0 for 64; interval: frames, at least 1
};

class Sam3Video {
 public:
  // REQUIRES: the parts' side is a multiple of 8.
  Sam3Video(Context& ctx, const Sam3Parts& parts, Sam3Calls& calls, const VideoJob& job,
            std::int64_t frames)
      : ctx_(ctx), parts_(parts), calls_(calls), job_(job), follower_(ctx, parts, calls, frames) {}

  // The next frame, (height, width, 3) from 0 to 1.
  void look(const float* pixels, const blocks::GridSize& size);
  // Of all frames that were looked at.
  blocks::ObjectTracks tracks(const blocks::GridSize& size);

 private:
  struct Found {
    std::vector<Floats> masks;  // logits of the decoder's size
    std::vector<float> scores;
  };
  using Bits = std::pmr::vector<std::uint8_t>;

  std::size_t most() const;
  bool detects() const { return !job_.texts.empty(); }
  blocks::GridSize fine() const { return {parts_.mask_side(), parts_.mask_side()}; }
  Found found(const Tensor& hidden);
  void begin(const Tensor& hidden, const Found& found);
  void follow(const Tensor& hidden, const Found& found, bool has_looked);
  void match(const Tensor& hidden, const Found& found);
  Bits bits_of(const Floats& mask, const blocks::GridSize& size);

  Context& ctx_;
  const Sam3Parts& parts_;
  Sam3Calls& calls_;
  const VideoJob& job_;
  Sam3Follower follower_;
  std::int64_t frame_ = 0;
  std::vector<Floats> masks_;  // of this frame
  std::vector<Bits> shown_;
  std::vector<std::int64_t> hidden_at_, alive_;  // alive: how often a thing was found again
  std::vector<double> scores_;
  std::vector<std::vector<Bits>> frames_;
};

}  // namespace heddle::detection
