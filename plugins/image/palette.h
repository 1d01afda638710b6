// Pictures in few colours, as Pillow's quantize() makes them: a palette by median cut (Heckbert,
// "Color image quantization for frame buffer display", 1982), and the nearest colours of it. Pure;
// any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::image {

using PaletteColour = std::array<std::uint8_t, 3>;

// At most `most` colours, 1 to 256, each the mean of those in its box. Fewer where the picture has
// fewer. REQUIRES: there are pixels.
std::vector<PaletteColour> median_cut(std::span<const PaletteColour> pixels, std::size_t most);

// The nearest colour of a palette for colours in steps of 4, as Pillow looks for it; of two, the
// first one. Keeps what it has found. One thread.
class NearestColour {
 public:
  explicit NearestColour(std::vector<PaletteColour> palette)
      : palette_(std::move(palette)), found_(std::size_t{64} * 64 * 64, kUnknown) {}
  const PaletteColour& operator()(const PaletteColour& colour);

 private:
  static constexpr std::uint16_t kUnknown = 256;
  std::vector<PaletteColour> palette_;
  std::vector<std::uint16_t> found_;
};

// Each pixel becomes its nearest colour.
void map_colours(std::span<PaletteColour> pixels, NearestColour& nearest);
// The same with Floyd's and Steinberg's diffusion of the error.
void diffuse_colours(std::span<PaletteColour> pixels, std::size_t width, NearestColour& nearest);
// Adds a matrix of thresholds of side 2^order, for ordered dithering to `colours` colours.
void add_bayer(std::span<PaletteColour> pixels, std::size_t width, int order, std::size_t colours);

}  // namespace heddle::image
