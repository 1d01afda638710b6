// plugins/blocks/minimax_latents.h - the latents of MiniMax H3's clips: how many frames they have,
// and their shapes, as ComfyUI's nodes make them. Pure functions; any thread.
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

}  // namespace heddle::blocks
