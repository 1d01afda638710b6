// LATENT values as samplers read and write them (heddle/diffusion/values.h): brought into the units
// and the channel count of the model, and the noise that belongs to them. One call's thread.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include <heddle/node.hpp>

#include "model_sampling.h"

namespace heddle::samplers {

inline constexpr std::int64_t kDownscale = 8;  // pixels of a picture along a side of a latent cell

struct Latent {
  Value record;                           // as it came; other fields are handed on
  Shape shape;                            // (B, C, ...) in the model's channels
  std::pmr::vector<float> values;         // in the model's units, row-major
  bool empty = false;                     // all values are 0: nothing of a picture is in it
  std::vector<std::int64_t> batch_index;  // empty: the items are 0 to B - 1
  // Of pictures and their sound the shapes of both; `shape` is then (B, 1, N), of each item all
  // numbers of the pictures, then those of the sound (pair_latent.h).
  std::vector<Shape> parts = {};
  double sound_scale = 1;  // the sound's values are so many times those of the record

  std::int64_t items() const { return shape[0]; }
  std::size_t item_count() const { return values.size() / std::size_t(shape[0]); }
};

// The samples of a LATENT as they are; an error without any.
Tensor samples_of(const Value& latent);

// The same, but of pictures and their sound those of the pictures.
Tensor pictures_of(const Value& latent);

// The positions of a latent (B, C, ...), all axes but the first two; 0 where there are none.
double tokens_of(const Shape& shape);

// What empty latents tell of themselves: the pixels along a side of their cells.
inline constexpr const char* kDownscaleKey = "downscale_ratio_spacial";

// Of a picture (B, C, H, W) for a model of videos: of one frame, (B, C, 1, H, W). Any other shape
// as it is.
Shape with_frames(Shape shape, bool has_frames);

// The shape of an empty latent whose cells have `from` pixels along a side, for a model whose cells
// have `to`, as ComfyUI rounds it. 0: not told.
Shape with_cells(Shape shape, std::int64_t from, std::int64_t to);

// Waits for the samples. An empty latent takes the model's channel count, and its size where the
// latent tells what its cells stand for, as in ComfyUI; another one of a wrong count is an error.
// The values, and the noise, are taken from `memory`.
Latent read_latent(Context& ctx, const Value& record, const LatentFormat& format,
                   std::pmr::memory_resource& memory);

// The noise of the whole batch, drawn as ComfyUI does.
std::pmr::vector<float> noise_of(const Latent& latent, std::uint64_t seed,
                                 std::pmr::memory_resource& memory);

// The record with other samples, in the model's units; it no longer tells of its cells. Of pictures
// and their sound both parts again.
Value with_samples(Context& ctx, const Latent& latent, const Tensor& samples);

}  // namespace heddle::samplers
