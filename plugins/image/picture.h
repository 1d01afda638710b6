// Pictures as bytes, and what every reader of picture files shares. Reading takes hostile bytes:
// everything that is wrong with a file is a heddle::Error that begins with the file's name. Pure
// functions; any thread.
#pragma once

#include <cstdint>
#include <heddle/plugin.hpp>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "plugins/blocks/pixel_limit.h"

namespace heddle::image {

using Bytes = std::pmr::vector<std::uint8_t>;

// 8-bit samples, row-major, channels innermost: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
struct Picture {
  std::uint32_t width = 0, height = 0, channels = 0;
  Bytes pixels;
};

// Where a picture's alpha comes from.
enum class Alpha { none, channel, palette, colour_key };

// One picture of a file: RGB, or RGBA when alpha is not none. Upright.
struct Frame {
  Picture picture;
  Alpha alpha = Alpha::none;
};

using blocks::kMostPixels;
using blocks::kMostWhole;

// A file, as it lies in memory, and how to read it.
struct EncodedPicture {
  std::span<const std::uint8_t> bytes;
  std::string name;                                                      // begins every message
  std::uint64_t most_pixels = kMostPixels;                               // of one picture
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // for pixels
};

// "NAME: this FORMAT cannot be read: WHY. Save the picture anew."
[[noreturn]] void refuse_picture(const EncodedPicture& file, const char* format,
                                 const std::string& why);

// Refuses a picture of more than most_pixels pixels or without any, and so many of them that they
// have kMostWhole times as many together.
void check_pixels(const EncodedPicture& file, std::uint64_t width, std::uint64_t height,
                  std::uint64_t frames = 1);

// Pillow's a * b / 255 of bytes, rounded.
constexpr std::uint8_t times_255th(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

// Pillow's RGB of cyan, magenta, yellow and black, 255 is full ink.
constexpr void cmyk_to_rgb(const std::uint8_t* ink, std::uint8_t* rgb) {
  const unsigned light = 255u - ink[3];
  for (int c = 0; c < 3; ++c)
    rgb[c] = static_cast<std::uint8_t>(light - times_255th(ink[c], light));
}

}  // namespace heddle::image
