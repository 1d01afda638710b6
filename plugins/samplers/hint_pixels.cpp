#include "hint_pixels.h"

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

namespace heddle::samplers {
namespace {

// `behind`: axes of a picture behind its height.
HintPixels read_pixels(Context& ctx, const Tensor& tensor, int behind,
                       std::pmr::memory_resource& memory) {
  const int height = -1 - behind;
  if (std::int64_t(tensor.rank()) < 1 + behind || tensor.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the hint of a ControlNet, or its mask, is empty. Link an IMAGE and a MASK.");
  HintPixels pixels{.rows = 1,
                    .colours = behind > 1 ? tensor.size(-1) : 1,
                    .height = tensor.size(height),
                    .width = tensor.size(height + 1),
                    .values = std::pmr::vector<float>(&memory)};
  pixels.rows = tensor.count() / (pixels.height * pixels.width * pixels.colours);
  pixels.values.resize(std::size_t(tensor.count()));
  read_to<float>(ctx, tensor.dtype() == HEDDLE_F32 ? tensor : ops::cast(ctx, tensor, HEDDLE_F32),
                 pixels.values);
  return pixels;
}

}  // namespace

HintPixels read_image(Context& ctx, const Tensor& image, std::pmr::memory_resource& memory) {
  return read_pixels(ctx, image, 2, memory);
}
HintPixels read_mask(Context& ctx, const Tensor& mask, std::pmr::memory_resource& memory) {
  return read_pixels(ctx, mask, 1, memory);
}

void resize(HintPixels& pixels, const blocks::GridSize& to, blocks::Resampling method,
            std::pmr::memory_resource& memory, bool crops) {
  if (pixels.size() == to) return;
  std::pmr::vector<float> resized(
      std::size_t(checked_product({pixels.rows, to.height, to.width, pixels.colours}, "the hint")),
      &memory);
  const auto all =
      blocks::Source::of(pixels.values.data(), {pixels.rows, pixels.size(), pixels.colours});
  blocks::resample(crops ? blocks::centre_cropped(all, to) : all, to, method, resized.data(),
                   memory);
  pixels.values = std::move(resized);
  pixels.height = to.height;
  pixels.width = to.width;
}

}  // namespace heddle::samplers
