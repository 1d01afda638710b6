// plugins/denoisers/patches.h - how a latent becomes tokens: 2x2 of its pixels, of all channels,
// are one. Pure; any thread.
#pragma once

#include <cstdint>

namespace heddle::denoisers {

inline constexpr std::int64_t kPatch = 2;  // pixels of the latent along each side of a token
inline constexpr std::int64_t kPatchArea = kPatch * kPatch;

// Tokens along a side of the latent; an odd side is completed by one pixel.
constexpr std::int64_t tokens_along(std::int64_t pixels) { return (pixels + kPatch - 1) / kPatch; }

}  // namespace heddle::denoisers
