// plugins/vae/scail_masks.h - pictures in which each person has a colour, as channels that SCAIL 2
// reads: of each of seven colours, how much of a cell has it. Formulas: ComfyUI's. One call's
// thread.
#pragma once

#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::vae {

// White, red, green, blue, yellow, magenta, cyan, for each of the four frames of pixels that a
// frame of the latent holds.
inline constexpr std::int64_t kMaskColours = 7, kMaskChannels = 4 * kMaskColours;

// Cells of a picture: its sides are halved three times, rounded up.
blocks::GridSize mask_cells(const blocks::GridSize& pixels);

// Bytes of host memory that the functions below take besides what they give, of such pictures in so
// many pixels.
std::uint64_t coloured_bytes(const heddle_tensor_info& pictures, const blocks::GridSize& pixels);

// Of pictures `first` to `first + count` of (B, H, W, 3 or more), resized from the middle to so
// many pixels by `area`: (1, (count - 1) / 4 + 1, kMaskChannels, h, w) f32; the first picture
// stands for four. REQUIRES: count is 4 n + 1. name: of the input, for errors.
struct MaskPictures {
  const Tensor& pictures;
  const char* name;
  std::int64_t first, count;
};
Tensor masks_of_video(Context& ctx, const MaskPictures& given, const blocks::GridSize& pixels);
// Of so many references and frames of a video: (1, references + frames, kMaskChannels, h, w) f32,
// resized by `nearest-exact`: those of the second picture and so on, then of the first, then zeros.
// Where there are fewer pictures, the last one stands for the others.
Tensor masks_of_references(Context& ctx, const Tensor& pictures, std::int64_t references,
                           std::int64_t frames, const blocks::GridSize& pixels);

// Of each of so many references the pixels (height, width) where its picture has a colour: 1, and 0
// elsewhere.
std::vector<std::pmr::vector<float>> shapes_of_persons(Context& ctx, const Tensor& pictures,
                                                       std::int64_t references,
                                                       const blocks::GridSize& pixels,
                                                       std::pmr::memory_resource& memory);

}  // namespace heddle::vae
