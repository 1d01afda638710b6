// plugins/upscalers/upscaler_shape.h - what nodes have to know of an upscaler: settings of its
// graph. Any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::upscalers {

struct UpscalerShape {
  std::int64_t scale = 1;                          // of both sides
  std::int64_t in_channels = 3, out_channels = 3;  // of pictures
  std::int64_t minimum = 1, multiple = 1;          // of the sides of what goes in, pixels
};

// scale * factor, of steps that one after another enlarge a picture. Throws HEDDLE_UNSUPPORTED
// where its sides would become more than 65536 times as long.
std::int64_t enlarged_by(const Checkpoint& file, std::int64_t scale, std::int64_t factor);

// With the setting "family".
void add_settings(Blocks& graph, const char* family, const UpscalerShape& shape);

// Of a model's settings. Throws HEDDLE_INVALID_ARGUMENT where they are not those of an upscaler.
UpscalerShape shape_of(const Value& settings);

}  // namespace heddle::upscalers
