// PNG files to 8-bit pictures and back. png.cpp is the only file that knows libpng. Reading takes
// hostile bytes: everything that is wrong with a file is a heddle::Error that begins with the
// file's name, and the memory used is bounded by the size of the file. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <heddle/plugin.hpp>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

namespace heddle::image {

using Bytes = std::pmr::vector<std::uint8_t>;

// 8-bit samples, row-major, channels innermost: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
struct Picture {
  std::uint32_t width = 0, height = 0, channels = 0;
  Bytes pixels;
};

// Where a picture's alpha comes from.
enum class Alpha { none, channel, palette, colour_key };

struct PngContent {
  Picture picture;  // RGB, or RGBA when alpha is not none
  Alpha alpha = Alpha::none;
  std::vector<std::uint8_t> exif;  // the eXIf chunk: a TIFF block, or empty
};

// A larger picture is refused, as Pillow refuses it: 2 * 2^30 / 4 / 3 pixels.
inline constexpr std::uint64_t kMostPixels = 178956970;

// All colour types, bit depths and Adam7. 16-bit samples keep their high byte; 16-bit grey is
// divided by 255 and clipped, as ComfyUI does for wide grey. gAMA and profiles are ignored. Of an
// animation: the picture that plain readers show. `name` begins every message. The picture is taken
// from `memory`.
PngContent read_png(std::span<const std::uint8_t> file, const std::string& name,
                    std::pmr::memory_resource& memory = *std::pmr::get_default_resource());

// key: 1 to 79 bytes that PNG allows; text: Latin-1.
struct TextChunk {
  std::string key, text;
};
bool is_png_key(const std::string& key);

// The file's bytes. REQUIRES: channels is 1 to 4 and pixels fits; level is zlib's, 0 to 9. Asks
// `cancelled` now and then and throws HEDDLE_CANCELLED when it says so. Taken from the memory that
// the picture is in.
Bytes write_png(const Picture& picture, std::span<const TextChunk> texts, int level,
                const std::function<bool()>& cancelled);

}  // namespace heddle::image
