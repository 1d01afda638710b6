// Filters of second order for sound (Robert Bristow-Johnson's Audio EQ Cookbook), as torchaudio's
// bass_biquad(), equalizer_biquad() and treble_biquad() have them. Pure functions; any thread.
#pragma once

#include <span>

namespace heddle::video {

// y[n] = b0 x[n] + b1 x[n-1] + b2 x[n-2] - a1 y[n-1] - a2 y[n-2]
struct Biquad {
  double b0 = 1, b1 = 0, b2 = 0, a1 = 0, a2 = 0;
};

struct Band {
  double decibels = 0;
  double frequency = 0;  // Hz, of the shelf's middle or of the peak
  double quality = 0.707;
};
Biquad low_shelf(const Band& band, double sample_rate);
Biquad peak(const Band& band, double sample_rate);
Biquad high_shelf(const Band& band, double sample_rate);

// In place; what comes out is clipped to -1 ... 1.
void filter(const Biquad& biquad, std::span<float> samples);

}  // namespace heddle::video
