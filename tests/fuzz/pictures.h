// What the fuzzers of picture formats share: whatever the bytes, a reader returns pictures that are
// whole, or throws Error with the file's name in front.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "plugins/image/picture.h"

namespace heddle::fuzz {

inline constexpr std::uint64_t kMostPixelsRead = 1 << 16;  // larger ones would only slow the search

inline void require_picture(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

template <class Read>
int try_picture(Read&& read, const std::uint8_t* data, std::size_t size) {
  std::vector<image::Frame> frames;
  try {
    frames = read(image::EncodedPicture{{data, size}, "fuzz", kMostPixelsRead});
  } catch (const Error& error) {
    require_picture(std::string_view(error.what()).starts_with("fuzz: "),
                    "an error starts with the file's name");
    return 0;
  }
  require_picture(!frames.empty(), "there is a picture");
  for (const image::Frame& frame : frames) {
    const image::Picture& p = frame.picture;
    require_picture(p.width > 0 && p.height > 0 && p.channels >= 3 && p.channels <= 4,
                    "sizes make sense");
    require_picture(std::uint64_t{p.width} * p.height <= kMostPixelsRead, "the limit holds");
    require_picture(p.pixels.size() == std::size_t{p.width} * p.height * p.channels,
                    "every pixel is there");
    require_picture(p.channels == 4 || frame.alpha == image::Alpha::none,
                    "alpha is there when the file has it");
  }
  return 0;
}

}  // namespace heddle::fuzz
