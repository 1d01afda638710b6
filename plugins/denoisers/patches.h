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

// Tokens of the latent x (B, C, H, W).
inline std::int64_t token_count(const Tensor& x, std::int64_t patch) {
  return tokens_along(x.size(2), patch) * tokens_along(x.size(3), patch);
}

// A picture (B, C, H, W) as (B, H/p, W/p, C, p, p), without copying; p divides H and W.
inline Tensor as_patches(const Tensor& x, std::int64_t patch) {
  const std::int64_t rows = x.size(2) / patch, columns = x.size(3) / patch;
  return x.reshape({x.size(0), x.size(1), rows, patch, columns, patch}).permute({0, 2, 4, 1, 3, 5});
}

}  // namespace heddle::denoisers
