// How a picture file is made of another.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

// How Engine::convert_picture() makes one picture file of another.
struct PictureConversion {
  enum class Channels { rgb, rgba, alpha };  // alpha: black, with the alpha of the file, or 255
  Channels channels = Channels::rgba;
  std::string format = "png";   // "png": of rgba texts of a PNG stay; "webp", "jpeg": lossy
  int quality = 90;             // 1 to 100, of webp and jpeg
  std::string_view alpha_from;  // another file, of the same size: its alpha is taken; "": its own
};

}  // namespace heddle
