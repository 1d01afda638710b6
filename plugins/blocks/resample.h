// plugins/blocks/resample.h - grids of numbers in another size, as ComfyUI resizes pictures and
// latents: PyTorch's interpolate() without antialiasing and corners not aligned, and Pillow's
// Lanczos filter on bytes. Every method is a weighted mean of a few cells along each axis, and its
// weights add up to 1: scaling and shifting all numbers before or after gives the same. Host
// memory, one thread; functions only, so any thread may call them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace heddle::blocks {

enum class Resampling { nearest_exact, bilinear, area, bicubic };

// By ComfyUI's name of it: "nearest-exact".
std::optional<Resampling> resampling_named(std::string_view name);

struct GridSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const GridSize&) const = default;
};

// Where numbers stand: `outer` grids one after another, each cell of `inner` numbers. A picture
// (B, H, W, C) has outer B and inner C; a latent (B, C, h, w) outer B C and inner 1.
struct Grids {
  std::int64_t outer = 1;
  GridSize size;
  std::int64_t inner = 1;
};

// The part in the middle that has the aspect of `to`, as ComfyUI cuts it before it resizes.
struct Crop {
  std::int64_t top = 0, left = 0;  // as much is cut off below and on the right
};
Crop centre_crop(const GridSize& from, const GridSize& to);
std::vector<float> cropped(std::span<const float> values, const Grids& from, const Crop& crop);

// REQUIRES: values are outer x height x width x inner; both sizes are at least 1 x 1.
std::vector<float> resampled(std::span<const float> values, const Grids& from, const GridSize& to,
                             Resampling method);

// The same for pictures from 0 to 1, through bytes (255 x, clipped, truncated) as Pillow's LANCZOS.
std::vector<float> lanczos_resampled(std::span<const float> values, const Grids& from,
                                     const GridSize& to);

// Python's round(): half to even.
std::int64_t rounded(double value);

}  // namespace heddle::blocks
