#include "plugins/vae/scail_masks.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/vae/video_frames.h"

namespace heddle::vae {
namespace {

constexpr float kColourOn = float(225.0 / 255.0), kColourThere = 0.1f;
constexpr int kHalvings = 3;
// Of red, green and blue the bits.
constexpr int kColourBits[kMaskColours] = {7, 1, 2, 4, 3, 5, 6};

// Pictures one after another in one size.
class ColouredPictures {
 public:
  ColouredPictures(Context& ctx, const Tensor& pictures, const char* name,
                   const blocks::GridSize& size, blocks::Resampling method)
      : ctx_(ctx),
        shape_(pictures_shape(pictures.shape(), name)),
        floats_(ctx, pictures),
        size_(size),
        method_(method),
        memory_(ctx),
        pixels_(std::size_t(checked_product({size.height, size.width, shape_[3]}, name)),
                &memory_) {}

  std::int64_t count() const { return shape_[0]; }
  // Calls of(pixel, its colours) for each pixel of a picture.
  template <class Of>
  void each(std::int64_t picture, Of&& of) {
    if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const std::int64_t channels = shape_[3], step = shape_[1] * shape_[2] * channels;
    const auto whole =
        blocks::Source::of(floats_.data() + picture * step, {1, {shape_[1], shape_[2]}, channels});
    blocks::resample(blocks::centre_cropped(whole, size_), size_, method_, pixels_.data(), memory_);
    for (std::int64_t i = 0; i < size_.height * size_.width; ++i)
      of(i, pixels_.data() + i * channels);
  }
  // Writes (kMaskColours, h, w).
  void put(std::int64_t picture, float* to) {
    const blocks::GridSize cells = mask_cells(size_);
    const std::int64_t pixels = size_.height * size_.width;
    std::pmr::vector<float> planes(std::size_t(pixels * kMaskColours), 0.0f, &memory_);
    each(picture, [&](std::int64_t i, const float* colours) {
      int bits = 0;
      for (int c = 0; c < 3; ++c) bits |= colours[c] > kColourOn ? 1 << c : 0;
      for (std::int64_t k = 0; k < kMaskColours; ++k)
        if (bits == kColourBits[k]) planes[std::size_t(k * pixels + i)] = 1;
    });
    blocks::resample(blocks::Source::of(planes.data(), {kMaskColours, size_, 1}), cells,
                     blocks::Resampling::area, to, memory_);
  }

 private:
  Context& ctx_;
  const Shape shape_;
  const HostFloats floats_;
  const blocks::GridSize size_;
  const blocks::Resampling method_;
  HostMemory memory_;
  std::pmr::vector<float> pixels_;
};

// Room for frames of masks, of zeros.
Tensor make_masks(Context& ctx, std::int64_t frames, const blocks::GridSize& cells) {
  const Tensor made =
      ctx.make_host({1, frames, kMaskChannels, cells.height, cells.width}, HEDDLE_F32);
  std::fill_n(made.data<float>(), made.count(), 0.0f);
  return made;
}

}  // namespace

blocks::GridSize mask_cells(const blocks::GridSize& pixels) {
  blocks::GridSize cells = pixels;
  for (int i = 0; i < kHalvings; ++i) cells = {(cells.height + 1) / 2, (cells.width + 1) / 2};
  return cells;
}

std::uint64_t coloured_bytes(const heddle_tensor_info& pictures, const blocks::GridSize& pixels) {
  const Shape shape(pictures.shape, pictures.shape + pictures.rank);
  const std::int64_t copied = pictures.dtype == HEDDLE_F32 ? 0 : count_of(shape),
                     held = checked_product({shape[3] + kMaskColours, pixels.height, pixels.width},
                                            "the masks");
  return std::max(blocks::resampling_bytes({1, {shape[1], shape[2]}, shape[3]}, pixels),
                  blocks::resampling_bytes({kMaskColours, pixels, 1}, mask_cells(pixels))) +
         sizeof(float) * std::uint64_t(checked_sum({copied, held}, "the masks"));
}

Tensor masks_of_video(Context& ctx, const MaskPictures& given, const blocks::GridSize& pixels) {
  const blocks::GridSize cells = mask_cells(pixels);
  const Tensor made = make_masks(ctx, latent_frames_of(given.count), cells);
  const std::int64_t colours = kMaskColours * cells.height * cells.width;
  ColouredPictures pictures(ctx, given.pictures, given.name, pixels, blocks::Resampling::area);
  float* to = made.data<float>();
  for (std::int64_t i = 0; i < given.count; ++i) {
    pictures.put(given.first + i, to);
    for (std::int64_t k = 1; i == 0 && k < kFramesOfCell; ++k)
      std::copy_n(to, colours, to + k * colours);
    to += (i == 0 ? kFramesOfCell : 1) * colours;
  }
  return made;
}

Tensor masks_of_references(Context& ctx, const Tensor& pictures, std::int64_t references,
                           std::int64_t frames, const blocks::GridSize& pixels) {
  const blocks::GridSize cells = mask_cells(pixels);
  const Tensor made = make_masks(ctx, references + frames, cells);
  const std::int64_t colours = kMaskColours * cells.height * cells.width;
  ColouredPictures given(ctx, pictures, "reference_image_mask", pixels,
                         blocks::Resampling::nearest_exact);
  float* to = made.data<float>();
  for (std::int64_t k = 0; k < references; ++k) {
    given.put(std::min((k + 1) % references, given.count() - 1), to);
    for (std::int64_t i = 1; i < kFramesOfCell; ++i) std::copy_n(to, colours, to + i * colours);
    to += kFramesOfCell * colours;
  }
  return made;
}

std::vector<std::pmr::vector<float>> shapes_of_persons(Context& ctx, const Tensor& pictures,
                                                       std::int64_t references,
                                                       const blocks::GridSize& pixels,
                                                       std::pmr::memory_resource& memory) {
  ColouredPictures given(ctx, pictures, "reference_image_mask", pixels,
                         blocks::Resampling::nearest_exact);
  std::vector<std::pmr::vector<float>> shapes;
  for (std::int64_t k = 0; k < references; ++k) {
    std::pmr::vector<float>& shape =
        shapes.emplace_back(std::size_t(pixels.height * pixels.width), &memory);
    given.each(std::min(k, given.count() - 1), [&](std::int64_t i, const float* colours) {
      const float most = std::max({colours[0], colours[1], colours[2]});
      shape[std::size_t(i)] = most > kColourThere ? 1.0f : 0.0f;
    });
  }
  return shapes;
}

}  // namespace heddle::vae
