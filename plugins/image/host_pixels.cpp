#include "plugins/image/host_pixels.h"

#include <algorithm>
#include <heddle/checked.hpp>

namespace heddle::image {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t side : shape) text += (text.empty() ? "" : ", ") + std::to_string(side);
  return "(" + text + ")";
}

std::int64_t product(const Extent& e) {
  return checked_product({e.count, e.height, e.width, e.channels}, "the pixels");
}

}  // namespace

Extent image_extent(const Shape& shape, const char* name) {
  if (shape.size() != 4 || *std::min_element(shape.begin(), shape.end()) < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(name) + ": an IMAGE is (batch, height, width, channels), this is " +
                    shape_text(shape) + ". Link an IMAGE with at least one pixel.");
  return {shape[0], shape[1], shape[2], shape[3]};
}

Extent mask_extent(const Shape& shape, const char* name) {
  const bool fits =
      (shape.size() == 2 || shape.size() == 3) && *std::min_element(shape.begin(), shape.end()) > 0;
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(name) + ": a MASK is (batch, height, width), this is " +
                    shape_text(shape) + ". Link a MASK with at least one pixel.");
  return {shape.size() == 3 ? shape[0] : 1, shape[shape.size() - 2], shape.back(), 1};
}

Shape image_shape(const Extent& e) { return {e.count, e.height, e.width, e.channels}; }
Shape mask_shape(const Extent& e) { return {e.count, e.height, e.width}; }

Pixels::Pixels(Context& ctx, const Tensor& tensor, const Extent& extent)
    : extent_(extent), given_(std::make_shared<HostFloats>(ctx, tensor)), data_(given_->data()) {}

void Pixels::resize(Context& ctx, const blocks::GridSize& to, const std::string& method,
                    bool crop) {
  if (extent_.size() == to && method != "lanczos")
    return;  // Lanczos makes bytes of them all the same
  if (to.height < 1 || to.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::to_string(extent_.width) + " x " + std::to_string(extent_.height) +
                    " pixels would become " + std::to_string(to.width) + " x " +
                    std::to_string(to.height) + ". Ask for a size of at least 1 x 1.");
  const Extent resized{extent_.count, to.height, to.width, extent_.channels};
  product(resized);
  HostMemory memory(ctx);
  blocks::Source from =
      blocks::Source::of(data_, {extent_.count, extent_.size(), extent_.channels});
  if (crop) from = blocks::centre_cropped(from, to);
  const Tensor result = ctx.make_host(image_shape(resized), HEDDLE_F32);
  const auto before_row = [&] { check_cancelled(ctx); };
  if (method == "lanczos")
    blocks::resample_lanczos(from, to, result.data<float>(), memory, before_row);
  else
    blocks::resample(from, to, blocks::resampling_named(method).value(), result.data<float>(),
                     memory, before_row);
  extent_ = resized;
  resized_ = result;
  given_.reset();
  data_ = resized_.data<float>();
}

Canvas Canvas::image(Context& ctx, const Extent& extent) {
  product(extent);
  return {ctx.make_host(image_shape(extent), HEDDLE_F32), extent};
}
Canvas Canvas::mask(Context& ctx, const Extent& extent) {
  product(extent);
  return {ctx.make_host(mask_shape(extent), HEDDLE_F32), extent};
}

void Canvas::copy(const Pixels& from) const {
  for (std::int64_t i = 0; i < extent_.count; ++i)
    std::copy_n(from.row(i, 0), extent_.picture(), row(i, 0));
}
void Canvas::fill(float value) const { std::fill_n(data_, size(), value); }

void check_cancelled(Context& ctx) {
  if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
}

}  // namespace heddle::image
