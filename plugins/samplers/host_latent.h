// The samples of a LATENT as nodes on the host read and make them: f32, (B, C, H, W) or
// (B, C, T, H, W). One call's thread.
#pragma once

#include <heddle/host_memory.hpp>
#include <heddle/node.hpp>
#include <memory>
#include <string>

namespace heddle::samplers {

class LatentCells {
 public:
  // Of a LATENT, or of a MASK as (B, 1, H, W). name: the input, for errors.
  static LatentCells of(Context& ctx, const Value& latent, const char* name);
  static LatentCells mask(Context& ctx, const Tensor& mask, const char* name);

  const Shape& shape() const { return shape_; }
  std::int64_t items() const { return shape_[0]; }
  std::int64_t item_size() const { return count_ / shape_[0]; }
  std::int64_t count() const { return count_; }
  std::int64_t height() const { return shape_[shape_.size() - 2]; }
  std::int64_t width() const { return shape_.back(); }
  // Numbers of item i; of a batch that is too short, its items come again and again.
  const float* item(std::int64_t i) const { return data_ + i % shape_[0] * item_size(); }

  // The last two axes in another size, by ComfyUI's name of a method.
  void resize(Context& ctx, std::int64_t height, std::int64_t width, const std::string& method,
              bool crop);
  // Brings the grid to that of `like`; then all axes but the batch have to be equal.
  void fit(Context& ctx, const LatentCells& like, const std::string& method);

 private:
  LatentCells(Context& ctx, const Tensor& tensor, Shape shape, const char* name);
  const char* name_;
  Shape shape_;
  std::int64_t count_ = 1;
  std::shared_ptr<HostFloats> given_;
  Tensor resized_;
  const float* data_ = nullptr;
};

// "(1, 4, 64, 64)"
std::string shape_text(const Shape& shape);

// A new latent: the fields of `from`, other samples.
Value with_new_samples(const Value& from, const Tensor& samples);

}  // namespace heddle::samplers
