// plugins/upscalers/swinir.h - SwinIR, of all ways to enlarge that its files have, and HAT, whose
// layers are SwinIR's with a branch of convolutions. All that differs is read from names and shapes
// of tensors. Inputs, outputs and settings as esrgan.h has them; pictures of any size, as sides are
// completed to whole windows inside.
#pragma once

#include <heddle/model.hpp>

namespace heddle::upscalers {

struct SwinIr {
  static constexpr Family family{"swinir", "upscaler", 1, "SwinIR: a picture, larger or restored"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Hat {
  static constexpr Family family{"hat", "upscaler", 1, "HAT: a picture, larger"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::upscalers
