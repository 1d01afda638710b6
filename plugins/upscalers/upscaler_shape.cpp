#include "upscaler_shape.h"

#include <algorithm>

namespace heddle::upscalers {

std::int64_t enlarged_by(const Checkpoint& file, std::int64_t scale, std::int64_t factor) {
  constexpr std::int64_t kMost = 1 << 16;
  if (factor > kMost / scale)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": its layers enlarge a picture by " +
                                        std::to_string(scale) + " times " + std::to_string(factor) +
                                        " or more, above the most, " + std::to_string(kMost) +
                                        ". The file is damaged.");
  return scale * factor;
}

void add_settings(Blocks& graph, const char* family, const UpscalerShape& shape) {
  graph.setting("family", family);
  graph.setting("scale", shape.scale);
  graph.setting("in_channels", shape.in_channels);
  graph.setting("out_channels", shape.out_channels);
  graph.setting("minimum", shape.minimum);
  graph.setting("multiple", shape.multiple);
}

UpscalerShape shape_of(const Value& settings) {
  const auto number = [&](const char* key) { return settings.get<std::int64_t>(key, 0); };
  const UpscalerShape shape{number("scale"), number("in_channels"), number("out_channels"),
                            number("minimum"), number("multiple")};
  if (std::min(
          {shape.scale, shape.in_channels, shape.out_channels, shape.minimum, shape.multiple}) < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "upscale_model: this model is no upscaler. Link an UpscaleModelLoader.");
  return shape;
}

}  // namespace heddle::upscalers
