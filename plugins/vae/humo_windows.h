// What HuMo hears of a sound in each frame of a latent: windows of eight moments, 25 a second, of
// five states each: means of eight layers' states of Whisper's encoder, and the last one. One
// call's thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

inline constexpr std::int64_t kHumoMoments = 8, kHumoMeans = 5;

// (1, frames, 8, 5, K) f32 in host memory, zeros where there is no sound. heard: an
// AUDIO_ENCODER_OUTPUT of 33 states; `none` gives silence of it. Throws where it is of another
// encoder.
Tensor humo_windows(Context& ctx, const Value& heard, std::int64_t frames, bool none);
// Its shape of states (S, B, T, K); empty where that throws.
Shape humo_shape(const Shape& states, std::int64_t frames);

}  // namespace heddle::vae
