// plugins/blocks/minimax_latents.h - the latents of MiniMax H3's clips: how many frames they have,
// their shapes, as ComfyUI's nodes make them, and the places of their tokens. Pure functions; any
// thread.
#pragma once

#include <cmath>
#include <cstdint>

#include <heddle/value.hpp>

namespace heddle::blocks {

// The next number of pictures, from `length` on, that the autoencoder makes: 5, 22, 39 ...
inline std::int64_t minimax_pictures(std::int64_t length) {
  constexpr std::int64_t kPeriod = 17, kFirst = 5;
  return length <= kFirst ? kFirst : kFirst + (length - kFirst + kPeriod - 1) / kPeriod * kPeriod;
}

// Of so many pictures (1, 24, F, height / 16, width / 16): 5 frames for 17, and 2 more.
inline Shape minimax_video_shape(std::int64_t pictures, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kCell = 16, kChannels = 24;
  return {1, kChannels, (pictures - 5) / 17 * 5 + 2, height / kCell, width / kCell};
}
// Of their sound, 24 pictures and 40 latents a second: (1, 32, 2, L).
inline Shape minimax_sound_shape(std::int64_t pictures) {
  return {1, 32, 2, std::int64_t(std::nearbyint(double(pictures) / 24.0 * 40.0))};
}

// How many pictures a video of so many frames of the latent has.
inline std::int64_t minimax_pictures_of(std::int64_t frames) { return (frames - 2) / 5 * 17 + 5; }

// Of frame `index` of a latent: where it begins, in pictures.
inline std::int64_t minimax_pictures_before(std::int64_t index) {
  constexpr std::int64_t kCycle = 5, kPeriod = 17, kEach = 4;
  const std::int64_t within = index % kCycle;
  return index / kCycle * kPeriod + (within == 0 ? 0 : 1 + (within - 1) * kEach);
}
// Of the time that a model reads, a picture's part: a sound's latent has 1.
inline constexpr double kMinimaxPictureTime = 5.0 / 3.0;

// Fields of an entry of a CONDITIONING: sounds that the model is shown, and when the video begins.
inline constexpr const char* kMinimaxSounds = "reference_sounds";
inline constexpr const char* kMinimaxStart = "media_start";
// Fields of a record of reference_latents or reference_sounds. Either at which picture of the video
// it stands, or when, counted from the text's end; of a sound of another video, the cells of that
// one, beside which it stands.
inline constexpr const char* kMinimaxFrame = "frame";
inline constexpr const char* kMinimaxTime = "time";
inline constexpr const char* kMinimaxHeight = "height";
inline constexpr const char* kMinimaxWidth = "width";

// Places along a side of tokens of 2 cells: the first, and from one to the next.
struct MinimaxSide {
  double step, first;

  // side: in cells; root: of the area.
  static MinimaxSide of(std::int64_t side, double root) {
    constexpr double kScale = 32;
    const double ratio = double(side) / root;
    return {kScale * ratio / double(side / 2), kScale * (1 - ratio) / 2};
  }
};

}  // namespace heddle::blocks
