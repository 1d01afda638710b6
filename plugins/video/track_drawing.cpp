#include "plugins/video/track_drawing.h"

#include <algorithm>
#include <string>

namespace heddle::video {
namespace {

constexpr std::int64_t kGlyphWidth = 3, kGlyphHeight = 5;
// A row of a digit in three bits, the left pixel in the highest.
constexpr std::uint8_t kDigits[10][kGlyphHeight] = {
    {7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {7, 1, 7, 4, 7}, {7, 1, 7, 1, 7}, {5, 5, 7, 1, 1},
    {7, 4, 7, 1, 7}, {7, 4, 7, 5, 7}, {7, 1, 1, 1, 1}, {7, 5, 7, 5, 7}, {7, 5, 7, 1, 7},
};

bool in_digit(int digit, std::int64_t y, std::int64_t x, std::int64_t scale) {
  if (y < 0 || x < 0 || y >= kGlyphHeight * scale || x >= kGlyphWidth * scale) return false;
  return ((kDigits[digit][y / scale] >> (kGlyphWidth - 1 - x / scale)) & 1) != 0;
}

// Whether the digit has a pixel among the nine around.
bool near_digit(int digit, std::int64_t y, std::int64_t x, std::int64_t scale) {
  for (std::int64_t v = y - 1; v <= y + 1; ++v)
    for (std::int64_t u = x - 1; u <= x + 1; ++u)
      if (in_digit(digit, v, u, scale)) return true;
  return false;
}

void put(const Canvas& canvas, std::int64_t y, std::int64_t x, const Rgb& colour) {
  if (y < 0 || x < 0 || y >= canvas.height || x >= canvas.width) return;
  float* const to = canvas.pixels + 3 * (y * canvas.width + x);
  to[0] = colour.red, to[1] = colour.green, to[2] = colour.blue;
}

}  // namespace

Rgb thing_colour(std::int64_t thing) {
  static constexpr Rgb kColours[] = {
      {0.12f, 0.47f, 0.71f}, {1.0f, 0.5f, 0.05f},   {0.17f, 0.63f, 0.17f}, {0.84f, 0.15f, 0.16f},
      {0.58f, 0.4f, 0.74f},  {0.55f, 0.34f, 0.29f}, {0.89f, 0.47f, 0.76f}, {0.5f, 0.5f, 0.5f},
      {0.74f, 0.74f, 0.13f}, {0.09f, 0.75f, 0.81f}, {0.94f, 0.76f, 0.06f}, {0.42f, 0.68f, 0.84f},
  };
  return kColours[std::size_t(thing) % std::size(kColours)];
}

void draw_number(const Canvas& canvas, std::int64_t number, std::int64_t x, std::int64_t y,
                 const Rgb& colour, std::int64_t scale) {
  const std::string digits = std::to_string(number);
  const std::int64_t high = kGlyphHeight * scale, wide = kGlyphWidth * scale, step = wide + scale,
                     left = x - (std::int64_t(digits.size()) * step - scale) / 2,
                     top = y - high / 2;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const int digit = digits[i] - '0';
    const std::int64_t at = left + std::int64_t(i) * step;
    for (std::int64_t v = -1; v <= high; ++v)
      for (std::int64_t u = -1; u <= wide; ++u)
        if (in_digit(digit, v, u, scale))
          put(canvas, top + v, at + u, colour);
        else if (near_digit(digit, v, u, scale))
          put(canvas, top + v, at + u, {0, 0, 0});
  }
}

void draw_things(const Canvas& canvas, std::span<const std::uint8_t> masks,
                 const std::vector<double>& scores, float opacity) {
  struct Sum {
    std::int64_t count = 0, x = 0, y = 0;
  };
  const std::int64_t pixels = canvas.height * canvas.width;
  std::vector<Sum> sums(masks.size() / std::size_t(pixels));
  for (std::int64_t i = 0; i < pixels; ++i) {
    bool is_free = true;
    for (std::size_t thing = 0; thing < sums.size(); ++thing) {
      if (masks[thing * std::size_t(pixels) + std::size_t(i)] == 0) continue;
      sums[thing].count += 1;
      sums[thing].x += i % canvas.width;
      sums[thing].y += i / canvas.width;
      if (!is_free) continue;
      is_free = false;
      const Rgb colour = thing_colour(std::int64_t(thing));
      float* const to = canvas.pixels + 3 * i;
      to[0] = to[0] * (1 - opacity) + colour.red * opacity;
      to[1] = to[1] * (1 - opacity) + colour.green * opacity;
      to[2] = to[2] * (1 - opacity) + colour.blue * opacity;
    }
  }
  constexpr std::int64_t kNumber = 3, kScore = 2, kBelow = kGlyphHeight * kNumber + 3;
  for (std::size_t thing = 0; thing < sums.size(); ++thing) {
    const Sum& sum = sums[thing];
    if (sum.count < 2) continue;
    const std::int64_t x = sum.x / sum.count, y = sum.y / sum.count;
    const Rgb colour = thing_colour(std::int64_t(thing));
    draw_number(canvas, std::int64_t(thing), x, y, colour, kNumber);
    if (thing < scores.size() && scores[thing] < 1)
      draw_number(canvas, std::int64_t(std::max(scores[thing], 0.0) * 100), x, y + kBelow, colour,
                  kScore);
  }
}

}  // namespace heddle::video
