// plugins/denoisers/patches.h - how a latent becomes tokens: a square of its pixels, of all
// channels, is one, of 2x2 pixels but where a family says otherwise. Pure; any thread.
#pragma once

#include <cstdint>

namespace heddle::denoisers {

inline constexpr std::int64_t kPatch = 2;  // pixels of the latent along each side of a token
inline constexpr std::int64_t kPatchArea = kPatch * kPatch;

// Tokens along a side of the latent; a side that is no multiple is completed.
constexpr std::int64_t tokens_along(std::int64_t pixels, std::int64_t patch = kPatch) {
  return (pixels + patch - 1) / patch;
}

}  // namespace heddle::denoisers
