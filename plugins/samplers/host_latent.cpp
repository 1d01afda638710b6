#include "host_latent.h"

#include <algorithm>
#include <heddle/checked.hpp>

#include "latent.h"
#include "plugins/blocks/resample.h"

namespace heddle::samplers {

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t side : shape) text += (text.empty() ? "" : ", ") + std::to_string(side);
  return "(" + text + ")";
}

LatentCells::LatentCells(Context& ctx, const Tensor& tensor, Shape shape, const char* name)
    : name_(name), shape_(std::move(shape)) {
  for (const std::int64_t side : shape_) count_ = checked_product({count_, side}, name);
  if (shape_.size() < 3 || count_ == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(name) + ": it is " + shape_text(shape_) +
                    "; (batch, channels, height, width) with at least one element is needed.");
  given_ = std::make_shared<HostFloats>(ctx, tensor);
  data_ = given_->data();
}

LatentCells LatentCells::of(Context& ctx, const Value& latent, const char* name) {
  const Tensor samples = samples_of(latent);
  return {ctx, samples, samples.shape(), name};
}

LatentCells LatentCells::mask(Context& ctx, const Tensor& mask, const char* name) {
  const Shape shape = mask.shape();
  if (shape.size() < 2)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(name) +
                                             ": a MASK is (batch, height, width), this is " +
                                             shape_text(shape) + ". Link a MASK.");
  const std::int64_t cells = shape[shape.size() - 2] * shape.back();
  return {ctx,
          mask,
          {cells == 0 ? 0 : mask.count() / cells, 1, shape[shape.size() - 2], shape.back()},
          name};
}

void LatentCells::resize(Context& ctx, std::int64_t height, std::int64_t width,
                         const std::string& method, bool crop) {
  if (height == this->height() && width == this->width()) return;
  if (height < 1 || width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(name_) + ": a grid of " +
                                             std::to_string(width) + " x " +
                                             std::to_string(height) + " cells is asked for.");
  const std::int64_t planes = count_ / (this->height() * this->width());
  HostMemory memory(ctx);
  blocks::Source from = blocks::Source::of(data_, {planes, {this->height(), this->width()}, 1});
  const blocks::GridSize to{height, width};
  if (crop) from = blocks::centre_cropped(from, to);
  shape_[shape_.size() - 2] = height;
  shape_.back() = width;
  count_ = checked_product({planes, height, width}, name_);
  resized_ = ctx.make_host(shape_, HEDDLE_F32);
  blocks::resample(from, to, blocks::resampling_named(method).value(), resized_.data<float>(),
                   memory);
  given_.reset();
  data_ = resized_.data<float>();
}

void LatentCells::fit(Context& ctx, const LatentCells& like, const std::string& method) {
  if (shape_.size() == like.shape_.size()) resize(ctx, like.height(), like.width(), method, true);
  if (!std::equal(shape_.begin() + 1, shape_.end(), like.shape_.begin() + 1, like.shape_.end()))
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(name_) + " is " + shape_text(shape_) + ", " +
                                             like.name_ + " " + shape_text(like.shape_) +
                                             ". Give latents of the same channels and frames.");
}

Value with_new_samples(const Value& from, const Tensor& samples) {
  return Record(from).set("samples", value_of(samples)).value();
}

}  // namespace heddle::samplers
