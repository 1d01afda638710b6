#include "minimax_prompts.h"

#include <algorithm>

namespace heddle::encoders {

void MinimaxPrompt::add_shown(const PromptPicture& picture) {
  labels_.emplace_back("<|vision_start|><|image_pad|><|vision_end|>");
  shown_.push_back(picture);
}

void MinimaxPrompt::add_picture(const PromptPicture& picture) {
  labels_.push_back("<Picture " + std::to_string(++pictures_) + ">: ");
  add_shown(picture);
}

void MinimaxPrompt::add_sound() {
  labels_.push_back("<Audio " + std::to_string(++sounds_) + ">: ");
}

void MinimaxPrompt::add_video(std::int64_t frames, const blocks::GridSize& size,
                              const Tensor& seen) {
  labels_.push_back("<Video " + std::to_string(++videos_) + ">: ");
  const std::int64_t count = seen_of(frames);
  for (std::int64_t first = 0; first < count; first += 2) {
    const bool is_pair = first + 1 < count;
    // Between two of them, at 0.25 seconds and so on, of which one digit is left, rounded to even;
    // the last one alone stands for both.
    labels_.push_back("<" + std::to_string(first / 2) + (is_pair ? ".2" : ".0") + " seconds>");
    PromptPicture pair{size, {}, is_pair ? 2 : 1};
    if (seen) pair.pixels = seen.slice(0, first, first + pair.frames);
    add_shown(pair);
  }
}

Prompt MinimaxPrompt::with(const std::string& text) const {
  Prompt prompt{.text = text, .by_encoder = {}};
  prompt.pictures = shown_;
  prompt.labels = labels_;
  prompt.tells_pictures = true;
  return prompt;
}

}  // namespace heddle::encoders
