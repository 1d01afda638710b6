// plugins/blocks/resample.h - grids of numbers in another size, as ComfyUI resizes pictures and
// latents: PyTorch's interpolate() with corners not aligned, and Pillow's
// Lanczos filter on bytes. Every method is a weighted mean of a few cells along each axis, and its
// weights add up to 1: scaling and shifting all numbers before or after gives the same. Host
// memory, one thread; functions only, so any thread may call them. Numbers are read where they
// are, row after row, and the sums are built in the result: what that takes besides does not grow
// with the height.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <optional>
#include <string_view>

namespace heddle::blocks {

// bicubic_antialiased, bilinear_antialiased: the filter is as wide as a cell of the result, of
// cubes that of Pillow (a = -0.5).
enum class Resampling {
  nearest_exact,
  bilinear,
  area,
  bicubic,
  bicubic_antialiased,
  bilinear_antialiased
};

// By the name that ComfyUI's nodes have for it: "nearest-exact".
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

// Numbers to read: cells of a row lie one after another, rows and grids may have gaps between them.
struct Source {
  const float* first = nullptr;  // of the first row that counts
  Grids grids;
  std::int64_t row_step = 0, grid_step = 0;  // numbers from one row, and one grid, to the next

  // All numbers of grids that lie without gaps.
  static Source of(const float* first, const Grids& grids) {
    const std::int64_t row = grids.size.width * grids.inner;
    return {first, grids, row, row * grids.size.height};
  }
  const float* row(std::int64_t grid, std::int64_t y) const {
    return first + grid * grid_step + y * row_step;
  }
};

// The part in the middle that has the aspect of `to`, as ComfyUI cuts it before it resizes. Not
// copied.
Source centre_cropped(const Source& from, const GridSize& to);

// Called before each row that is read; what it throws leaves the result half made.
using BeforeRow = std::function<void()>;

// Writes outer x to.height x to.width x inner numbers. REQUIRES: both sizes are at least 1 x 1.
// Takes its rows and tables from `memory`.
void resample(const Source& from, const GridSize& to, Resampling method, float* out,
              std::pmr::memory_resource& memory, const BeforeRow& before_row = {});

// The same for pictures from 0 to 1, through bytes (255 x, clipped, truncated) as Pillow's LANCZOS.
void resample_lanczos(const Source& from, const GridSize& to, float* out,
                      std::pmr::memory_resource& memory, const BeforeRow& before_row = {});

// What either takes of `memory` at most, in bytes.
std::uint64_t resampling_bytes(const Grids& from, const GridSize& to);

// Python's round(): half to even.
std::int64_t rounded(double value);

}  // namespace heddle::blocks
