// What the text encoder of MiniMax H3 reads: the prompt as it is, behind what it speaks of as
// <Picture 1>, <Video 1>, <Audio 1> ..., each counted by itself. Of a video it sees two pictures a
// second in pairs, each behind its time; a sound is only named. Source: the publishers' pipeline in
// diffusers. Plain values.
#pragma once

#include "prompt_tokens.h"

namespace heddle::encoders {

class MinimaxPrompt {
 public:
  void add_picture(const PromptPicture& picture);
  void add_sound();
  // Pictures (F, h, w, 3) in host memory of which every twelfth is seen, or only their number and
  // size.
  void add_video(std::int64_t frames, const blocks::GridSize& size, const Tensor& seen = {});
  // With the prompt behind all of them.
  Prompt with(const std::string& text) const;

  // How many of so many pictures of a video are seen, and which.
  static std::int64_t seen_of(std::int64_t frames) { return (frames + kStride - 1) / kStride; }
  static std::int64_t frame_of(std::int64_t seen) { return seen * kStride; }

 private:
  static constexpr std::int64_t kStride = 12;
  void add_shown(const PromptPicture& picture);

  std::vector<std::string> labels_;
  std::vector<PromptPicture> shown_;
  int pictures_ = 0, videos_ = 0, sounds_ = 0;
};

}  // namespace heddle::encoders
