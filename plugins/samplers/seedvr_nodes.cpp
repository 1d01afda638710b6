#include "seedvr_nodes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host_latent.h"
#include "latent.h"
#include "plugins/blocks/dynamic_inputs.h"

namespace heddle::samplers {
namespace {

constexpr std::int64_t kSeedChannels = 16, kSeedFrames = 4, kSeedDownscale = 8;
// ComfyUI's rule of how many frames of a latent fit: of what is free, without what the model and
// the device take, so much for a million pixels of a frame. GiB.
constexpr double kFreeGib = 24, kReservedGib = 8.5 + 4 * 0.55, kGibOfMegapixel = 0.55;

// Frames of the latent in a part, at least 1.
std::int64_t fitting_cells(const Shape& shape) {
  const double megapixels = double(shape[0]) * double(shape[3]) * double(shape[4]) *
                            kSeedDownscale * kSeedDownscale / 1e6;
  return std::max<std::int64_t>(
      1, std::int64_t((kFreeGib - kReservedGib) / (kGibOfMegapixel * megapixels)));
}

std::int64_t chosen_cells(const blocks::ChosenVariant& mode, const Shape& shape) {
  if (mode.key() == "auto") return fitting_cells(shape);
  const std::int64_t frames = mode.whole("frames_per_chunk");
  if ((frames - 1) % kSeedFrames != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "chunking_mode.frames_per_chunk: " + std::to_string(frames) +
                    " frames are not 4 n + 1. Give 1, 5, 9, 13, 17, 21 or so on.");
  return (frames - 1) / kSeedFrames + 1;
}

// (B, C, T, h, w), a picture being a video of one frame: frames of a plane lie one after another.
struct VideoPlanes {
  std::int64_t planes, frames, cell;
  explicit VideoPlanes(const Shape& shape)
      : planes(shape[0] * shape[1]), frames(shape[2]), cell(shape[3] * shape[4]) {}
};
Shape video_shape(const LatentCells& cells) { return with_frames(cells.shape(), true); }

Tensor frames_of(Context& ctx, const LatentCells& cells, std::int64_t begin, std::int64_t end) {
  Shape shape = video_shape(cells);
  const VideoPlanes from(shape);
  shape[2] = end - begin;
  const Tensor part = ctx.make_host(shape, HEDDLE_F32);
  float* to = part.data<float>();
  for (std::int64_t p = 0; p < from.planes; ++p)
    to = std::copy_n(cells.item(0) + (p * from.frames + begin) * from.cell,
                     (end - begin) * from.cell, to);
  return part;
}

// How much of `count` frames that two parts have stays of the former at each: flat in the first and
// the last third, half a wave of a cosine in between.
std::vector<float> fading(std::int64_t count) {
  std::vector<float> weights;
  for (std::int64_t i = 0; i < count; ++i) {
    const double at = count > 1 ? double(i) / double(count - 1) : 0;
    weights.push_back(
        float(0.5 + 0.5 * std::cos(std::numbers::pi * std::clamp(3 * at - 1, 0.0, 1.0))));
  }
  return weights;
}

// Puts parts behind each other in the planes of a video.
struct Joining {
  float* to;
  VideoPlanes all;
  std::int64_t filled = 0;  // frames

  void add(const LatentCells& part, std::int64_t begin) {
    const VideoPlanes from(video_shape(part));
    const std::int64_t shared = std::clamp<std::int64_t>(filled - begin, 0, from.frames);
    const std::vector<float> weights = fading(shared);
    for (std::int64_t p = 0; p < from.planes; ++p)
      for (std::int64_t t = 0; t < from.frames; ++t) {
        const float* cells = part.item(0) + (p * from.frames + t) * from.cell;
        float* out = to + (p * all.frames + begin + t) * all.cell;
        if (t >= shared) {
          std::copy_n(cells, from.cell, out);
          continue;
        }
        const float before = weights[std::size_t(t)];
        for (std::int64_t i = 0; i < from.cell; ++i)
          out[i] = out[i] * before + cells[i] * (1.0f - before);
      }
    filled = begin + from.frames;
  }
};

// A mask belongs to its part alone.
Value without_mask(const Value& latent) {
  Record record;
  for (std::uint32_t i = 0; i < latent.count(); ++i)
    if (std::string_view(latent.key(i)) != "noise_mask") record.set(latent.key(i), latent.item(i));
  return record.value();
}

void require_part(const LatentCells& part, const LatentCells& first, std::uint32_t number,
                  bool is_last) {
  Shape like = video_shape(part);
  const Shape wanted = video_shape(first);
  const bool is_video = like.size() == 5 && wanted.size() == 5;
  if (is_video && is_last) like[2] = wanted[2];
  if (is_video && like == wanted) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "latents: number " + std::to_string(number) + " is " + shape_text(part.shape()) +
                  ", the first " + shape_text(first.shape()) +
                  ". Give latents of videos of one size, of which only the last may have another "
                  "number of frames.");
}

}  // namespace

void SeedVR2TemporalChunk::execute(Context& ctx) {
  const Value from = ctx[latent];
  const LatentCells cells = LatentCells::of(ctx, from, "latent");
  const Shape shape = video_shape(cells);
  if (shape.size() != 5 || shape[1] != kSeedChannels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent is " + shape_text(shape) + ". Give one of SeedVR2's videos, of " +
                    std::to_string(kSeedChannels) +
                    " channels and frames: (batch, 16, frames, height, width).");
  const std::int64_t frames = shape[2],
                     size = chosen_cells(blocks::ChosenVariant(ctx, chunking_mode), shape);
  if (frames <= size) {
    ctx[latents] = list_of({from});
    ctx[overlap] = std::int64_t{0};
    return;
  }
  const std::int64_t shared = std::min(std::int64_t(ctx[temporal_overlap]), size - 1);
  std::vector<Value> parts;
  for (std::int64_t begin = 0;; begin += size - shared) {
    const std::int64_t end = std::min(begin + size, frames);
    parts.push_back(with_new_samples(from, frames_of(ctx, cells, begin, end)));
    if (end == frames) break;
  }
  ctx[latents] = list_of(parts);
  ctx[overlap] = shared;
}

void SeedVR2TemporalMerge::execute(Context& ctx) {
  const Value list = ctx[latents];
  if (list.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "latents: the list is empty. Give at least one latent.");
  const Value whole = without_mask(list.item(0));
  const LatentCells first = LatentCells::of(ctx, list.item(0), "latents");
  require_part(first, first, 1, false);
  if (list.count() == 1) {
    ctx[out] = whole;
    return;
  }
  const std::int64_t size = video_shape(first)[2],
                     step = size - std::min(std::int64_t(ctx[temporal_overlap]), size - 1);
  std::int64_t last_frames = 0;
  for (std::uint32_t n = 1; n < list.count(); ++n) {
    const LatentCells part = LatentCells::of(ctx, list.item(n), "latents");
    require_part(part, first, n + 1, n + 1 == list.count());
    last_frames = video_shape(part)[2];
  }
  if (last_frames < size - step)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latents: the last one has " + std::to_string(last_frames) +
                    " frames, which is less than the overlap of " + std::to_string(size - step) +
                    ". Link temporal_overlap of the SeedVR2TemporalChunk that made them.");
  Shape shape = video_shape(first);
  shape[2] = step * std::int64_t(list.count() - 1) + last_frames;
  const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
  Joining joining{samples.data<float>(), VideoPlanes(shape)};
  joining.add(first, 0);
  for (std::uint32_t n = 1; n < list.count(); ++n)
    joining.add(LatentCells::of(ctx, list.item(n), "latents"), step * std::int64_t(n));
  ctx[out] = with_new_samples(whole, samples);
}

}  // namespace heddle::samplers
