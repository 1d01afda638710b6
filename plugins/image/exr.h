// Pictures as OpenEXR files: exr.cpp is the only file that knows that library. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle::image {

struct ExrSettings {
  bool is_wide = false;                                    // BT.2020 instead of BT.709
  std::vector<std::pair<std::string, std::string>> notes;  // attributes of the header
};

// The file's bytes: f32 without compression, one channel as Y, three or four as R, G, B, A. values:
// row-major, channels innermost. REQUIRES: 1, 3 or 4 channels, and values that fit.
std::string write_exr(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                      std::span<const float> values, const ExrSettings& settings);

}  // namespace heddle::image
