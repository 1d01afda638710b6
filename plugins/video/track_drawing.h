// Colours and numbers of things that were followed, on pictures of three floats a pixel. Functions
// of numbers only; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::video {

struct Rgb {
  float red, green, blue;
};
// Twelve colours in turn.
Rgb thing_colour(std::int64_t thing);

struct Canvas {
  float* pixels;  // (height, width, 3)
  std::int64_t height, width;
};

// Digits of 3 x 5 squares of `scale` pixels, black around, their middle at x, y; what does not fit
// is left out.
void draw_number(const Canvas& canvas, std::int64_t number, std::int64_t x, std::int64_t y,
                 const Rgb& colour, std::int64_t scale);

// Lays a colour over the pixels of the first thing that has them, then the numbers. masks: of all
// things, one after another, 1 where they are; scores: as far as things have one.
void draw_things(const Canvas& canvas, std::span<const std::uint8_t> masks,
                 const std::vector<double>& scores, float opacity);

}  // namespace heddle::video
