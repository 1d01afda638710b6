// plugins/denoisers/patches.h - how a latent becomes tokens: a square of its pixels, of all
// channels, is one, of 2x2 pixels but where a family says otherwise. Pure; any thread.
#pragma once

#include <cstdint>
#include <heddle/value.hpp>

namespace heddle::denoisers {

inline constexpr std::int64_t kPatch = 2;  // pixels of the latent along each side of a token
inline constexpr std::int64_t kPatchArea = kPatch * kPatch;

// Tokens along a side of the latent; a side that is no multiple is completed.
constexpr std::int64_t tokens_along(std::int64_t pixels, std::int64_t patch = kPatch) {
  return (pixels + patch - 1) / patch;
}

// A latent of pictures (B, C, H, W), or of several in each item, one behind the other: (B, C, F, H,
// W), as Qwen-Image-Layered draws.
inline std::int64_t frame_count(const Tensor& x) { return x.rank() == 5 ? x.size(2) : 1; }
inline std::int64_t height_of(const Tensor& x) { return x.size(x.rank() - 2); }
inline std::int64_t width_of(const Tensor& x) { return x.size(x.rank() - 1); }

// The picture at `index` of each item, (B, C, H, W), without copying.
inline Tensor frame_of(const Tensor& x, std::int64_t index) {
  if (x.rank() != 5) return x;
  return x.slice(2, index, index + 1).reshape({x.size(0), x.size(1), x.size(3), x.size(4)});
}

// Tokens of such a latent.
inline std::int64_t token_count(const Tensor& x, std::int64_t patch) {
  return frame_count(x) * tokens_along(height_of(x), patch) * tokens_along(width_of(x), patch);
}

// A picture (B, C, H, W) as (B, H/p, W/p, C, p, p), without copying; p divides H and W.
inline Tensor as_patches(const Tensor& x, std::int64_t patch) {
  const std::int64_t rows = x.size(2) / patch, columns = x.size(3) / patch;
  return x.reshape({x.size(0), x.size(1), rows, patch, columns, patch}).permute({0, 2, 4, 1, 3, 5});
}

}  // namespace heddle::denoisers
