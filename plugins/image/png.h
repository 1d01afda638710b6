// PNG files to 8-bit pictures and back. png.cpp is the only file that knows libpng. Reading takes
// hostile bytes: everything that is wrong with a file is a heddle::Error that begins with the
// file's name, and the memory used is bounded by the size of the file. Pure functions; any thread.
#pragma once

#include <functional>

#include "plugins/image/picture.h"

namespace heddle::image {

struct PngContent {
  Picture picture;  // RGB, or RGBA when alpha is not none
  Alpha alpha = Alpha::none;
  std::vector<std::uint8_t> exif;  // the eXIf chunk: a TIFF block, or empty
};

// All colour types, bit depths and Adam7. 16-bit samples keep their high byte; 16-bit grey is
// divided by 255 and clipped, as ComfyUI does for wide grey. gAMA and profiles are ignored. Of an
// animation: the picture that plain readers show. Not turned.
PngContent read_png(const EncodedPicture& file);

// key: 1 to 79 bytes that PNG allows; text: Latin-1.
struct TextChunk {
  std::string key, text;
};
bool is_png_key(const std::string& key);

// The file's bytes. depth: bits of a sample, 8, or 16 with the high byte first. REQUIRES: channels
// is 1 to 4 and pixels fits; level is zlib's, 0 to 9. Asks `cancelled` now and then and throws
// HEDDLE_CANCELLED when it says so. Taken from the memory that the picture is in.
Bytes write_png(const Picture& picture, std::span<const TextChunk> texts, int level,
                const std::function<bool()>& cancelled, int depth = 8);

}  // namespace heddle::image
