#include "picture_numbers.h"

#include <algorithm>
#include <vector>

namespace heddle::samplers {

Tensor picture_numbers(Context& ctx, const Value& entry, const Value& settings,
                       const ConcatPlace& place) {
  const auto count = settings.get<std::int64_t>("size_numbers", 0),
             downscale = settings.get<std::int64_t>("latent_downscale", 8);
  const auto number = [&](const char* key, double otherwise) {
    return entry.get<double>(key, otherwise);
  };
  const std::size_t axes = place.grid.size();
  const double height = number("height", double(place.grid[axes - 2] * downscale)),
               width = number("width", double(place.grid[axes - 1] * downscale));
  std::vector<double> numbers{height, width, number("crop_h", 0), number("crop_w", 0)};
  if (count == 3 || count == 1) {
    numbers = {number("fps", 6) - 1, number("motion_bucket_id", 127),
               number("augmentation_level", 0)};
    if (count == 1) numbers = {numbers.back()};
  } else if (count == 5) {
    numbers.push_back(number("aesthetic_score", place.is_negative ? 2.5 : 6));
  } else {
    numbers.push_back(number("target_height", height));
    numbers.push_back(number("target_width", width));
  }
  const Tensor tensor = ctx.make_host({1, std::int64_t(numbers.size())}, HEDDLE_F32);
  std::ranges::transform(numbers, tensor.data<float>(), [](double told) { return float(told); });
  return tensor;
}

}  // namespace heddle::samplers
