#include "plugins/image/picture_batch.h"

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/image/pixels.h"

namespace heddle::image {

void check_images(const Tensor& images) {
  const Shape shape = images.shape();
  const bool fits =
      shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[3] >= 1 && shape[3] <= 4;
  if (fits && images.dtype() == HEDDLE_F32) return;
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "images: a picture is (batch, height, width, 1 to 4 channels) of f32, this is (" +
                  text + ") of type " + std::to_string(images.dtype()) +
                  ". Decode it first (VAEDecode).");
}

Picture picture_of(Context& ctx, const Tensor& images, std::int64_t index,
                   std::pmr::memory_resource& memory) {
  const HostFloats values(ctx, images.slice(0, index, index + 1));
  Quantised quantised = quantise(values.elements(), memory);
  if (quantised.nan_count > 0)
    ctx.warn(
        "picture " + std::to_string(index) + ": " + std::to_string(quantised.nan_count) +
        " values are not numbers and become black. The model made them; try --compute with f32.");
  return {checked_cast<std::uint32_t>(images.size(2), "width"),
          checked_cast<std::uint32_t>(images.size(1), "height"),
          checked_cast<std::uint32_t>(images.size(3), "channels"), std::move(quantised.samples)};
}

}  // namespace heddle::image
