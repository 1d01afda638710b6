// plugins/upscalers/dat.h - DAT, light ones as well: layers that attend within windows and between
// channels, in turns. Inputs, outputs and settings as esrgan.h has them; pictures of any size.
#pragma once

#include <heddle/model.hpp>

namespace heddle::upscalers {

struct Dat {
  static constexpr Family family{"dat", "upscaler", 1, "DAT: a picture, larger"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::upscalers
