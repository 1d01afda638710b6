// IMAGE (B, H, W, C) and MASK (B, H, W) f32 as nodes on the host read and make them. One call's
// thread.
#pragma once

#include <functional>
#include <heddle/host_memory.hpp>
#include <heddle/node.hpp>
#include <memory>

#include "plugins/blocks/resample.h"

namespace heddle::image {

// Sizes of an IMAGE; of a MASK with one channel.
struct Extent {
  std::int64_t count = 0, height = 0, width = 0, channels = 1;

  blocks::GridSize size() const { return {height, width}; }
  std::int64_t row() const { return width * channels; }
  std::int64_t picture() const { return height * row(); }
  bool operator==(const Extent&) const = default;
};

// Throw HEDDLE_INVALID_ARGUMENT for what is no IMAGE, or no MASK. A mask may lack the batch.
Extent image_extent(const Shape& shape, const char* name);
Extent mask_extent(const Shape& shape, const char* name);
Shape image_shape(const Extent& extent);
Shape mask_shape(const Extent& extent);

// The numbers of an input, row-major in host memory: as they came, or resampled.
class Pixels {
 public:
  Pixels(Context& ctx, const Tensor& tensor, const Extent& extent);
  static Pixels image(Context& ctx, const Tensor& tensor, const char* name) {
    return {ctx, tensor, image_extent(tensor.shape(), name)};
  }
  static Pixels mask(Context& ctx, const Tensor& tensor, const char* name) {
    return {ctx, tensor, mask_extent(tensor.shape(), name)};
  }

  const Extent& extent() const { return extent_; }
  // Row y of picture i; of a batch that is too short, its pictures come again and again.
  const float* row(std::int64_t i, std::int64_t y) const {
    return data_ + i % extent_.count * extent_.picture() + y * extent_.row();
  }
  const float* at(std::int64_t i, std::int64_t y, std::int64_t x) const {
    return row(i, y) + x * extent_.channels;
  }

  // In another size, by ComfyUI's name of a method; nothing is done where the size is the same.
  // Lanczos works on bytes.
  void resize(Context& ctx, const blocks::GridSize& to, const std::string& method,
              bool crop = false);

 private:
  Extent extent_;
  std::shared_ptr<HostFloats> given_;
  Tensor resized_;
  const float* data_;
};

// Where a node's result is built: pixels of an output, uninitialised.
class Canvas {
 public:
  static Canvas image(Context& ctx, const Extent& extent);
  static Canvas mask(Context& ctx, const Extent& extent);

  const Extent& extent() const { return extent_; }
  const Tensor& tensor() const { return tensor_; }
  float* row(std::int64_t i, std::int64_t y) const {
    return data_ + i * extent_.picture() + y * extent_.row();
  }
  float* at(std::int64_t i, std::int64_t y, std::int64_t x) const {
    return row(i, y) + x * extent_.channels;
  }
  float* data() const { return data_; }
  std::int64_t size() const { return extent_.count * extent_.picture(); }
  // REQUIRES: the same extent.
  void copy(const Pixels& from) const;
  void fill(float value) const;

 private:
  Canvas(const Tensor& tensor, const Extent& extent)
      : tensor_(tensor), extent_(extent), data_(tensor.data<float>()) {}
  Tensor tensor_;
  Extent extent_;
  float* data_;
};

// Throws HEDDLE_CANCELLED when the run was.
void check_cancelled(Context& ctx);

// The shape of an output, told before the run where the input's is known.
template <class In, class Out>
void infer_like(Infer& question, const In& in, const Out& out) {
  if (const auto shape = question.shape(in)) question.out(out, "", HEDDLE_F32, *shape);
}
template <class In>
std::optional<Extent> extent_of_image(const Infer& question, const In& in) {
  const auto shape = question.shape(in);
  if (!shape || shape->size() != 4) return std::nullopt;
  return image_extent(*shape, "image");
}
template <class In>
std::optional<Extent> extent_of_mask(const Infer& question, const In& in) {
  const auto shape = question.shape(in);
  if (!shape || (shape->size() != 2 && shape->size() != 3)) return std::nullopt;
  return mask_extent(*shape, "mask");
}

}  // namespace heddle::image
