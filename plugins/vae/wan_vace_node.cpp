#include "plugins/vae/wan_vace_node.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

// Pixels of a cell along a side, each of which has a channel in the mask that VACE reads.
constexpr std::int64_t kVaceCell = 8;

WanJob vace_job(WanJob job) {
  const blocks::GridSize& pixels = job.pixels;
  if (pixels.height == job.grid.height * kVaceCell && pixels.width == job.grid.width * kVaceCell)
    return job;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "width " + std::to_string(pixels.width) + ", height " +
                  std::to_string(pixels.height) +
                  ": VACE draws whole cells of 8x8 pixels, with the autoencoder of Wan 2.1. Give "
                  "it sides that are multiples of 8, and that autoencoder.");
}

// (length, height, width): 1 where it is drawn anew.
std::pmr::vector<float> read_masks(Context& ctx, const blocks::GridSize& pixels,
                                   std::int64_t length, HostMemory& memory) {
  using N = WanVaceToVideo;
  const std::int64_t plane = pixels.height * pixels.width;
  std::pmr::vector<float> all(std::size_t(checked_product({length, plane}, "control_masks")), 1.0f,
                              &memory);
  if (!ctx.has(N::control_masks)) return all;
  const Tensor masks = ctx[N::control_masks];
  if (masks.rank() != 3 || masks.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "control_masks: masks are (batch, height, width), these have " +
                    std::to_string(masks.rank()) + " axes and " + std::to_string(masks.count()) +
                    " numbers. Link a MASK.");
  const blocks::GridSize size{masks.size(1), masks.size(2)};
  const HostFloats floats(ctx, masks);
  for (std::int64_t t = 0; t < std::min(masks.size(0), length); ++t) {
    const auto one = blocks::Source::of(floats.data() + t * size.height * size.width, {1, size, 1});
    blocks::resample(blocks::centre_cropped(one, pixels), pixels, blocks::Resampling::bilinear,
                     all.data() + t * plane, memory);
  }
  return all;
}

// (1, 64, before + T, h, w): of each frame of the latent the mask in the middle of those that it
// holds, as PyTorch's nearest-exact has it, and zeros before them.
Tensor mask_of_cells(Context& ctx, const float* masks, std::int64_t length, const VideoGrid& grid,
                     std::int64_t before) {
  constexpr std::int64_t kPixels = kVaceCell * kVaceCell;
  const std::int64_t cells = grid.height * grid.width, row = grid.width * kVaceCell;
  const Tensor made =
      ctx.make_host({1, kPixels, before + grid.frames, grid.height, grid.width}, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::int64_t pixel = 0; pixel < kPixels; ++pixel) {
    to = std::fill_n(to, before * cells, 0.0f);
    for (std::int64_t t = 0; t < grid.frames; ++t) {
      const std::int64_t frame = (2 * t + 1) * length / (2 * grid.frames);
      const float* const from =
          masks + frame * cells * kPixels + pixel / kVaceCell * row + pixel % kVaceCell;
      for (std::int64_t y = 0; y < grid.height; ++y)
        for (std::int64_t x = 0; x < grid.width; ++x) *to++ = from[(y * row + x) * kVaceCell];
    }
  }
  return made;
}

// What is kept of the video (what_is_left) or drawn anew, encoded.
Tensor encoded_part(Context& ctx, const WanJob& job, const float* masks, bool what_is_left) {
  using N = WanVaceToVideo;
  FrameStrip strip(ctx, ctx[N::vae], job.grid.pixel_frames(), job.pixels);
  if (ctx.has(N::control_video)) {
    strip.put(ctx[N::control_video], "control_video", 0, job.grid.pixel_frames(), 0);
    strip.keep(masks, what_is_left);
  }
  return strip.encoded();
}

Tensor encoded_reference(Context& ctx, const WanJob& job) {
  using N = WanVaceToVideo;
  FrameStrip strip(ctx, ctx[N::vae], 1, job.pixels);
  strip.put(ctx[N::reference_image], "reference_image", 0, 1, 0);
  return strip.encoded();
}

}  // namespace

void WanVaceToVideo::execute(Context& ctx) {
  WanJob job = vace_job(wan_job<WanVaceToVideo>(ctx));
  const VideoGrid grid = job.grid;
  const std::int64_t before = ctx.has(reference_image) ? 1 : 0, channels = grid.channels;
  HostMemory memory(ctx);
  const std::pmr::vector<float> masks = read_masks(ctx, job.pixels, ctx[length], memory);
  WanJob whole = job;
  whole.grid.frames += before;
  const Tensor frames = model_zeros(ctx, Autoencoder(ctx[vae]), whole.grid, 2);
  const auto put = [&](const Tensor& part, std::int64_t channel, std::int64_t frame) {
    ops::copy_into(
        ctx, part,
        frames.slice(1, channel, channel + channels).slice(2, frame, frame + part.size(2)));
  };
  if (before > 0) put(encoded_reference(ctx, job), 0, 0);
  put(encoded_part(ctx, job, masks.data(), true), 0, before);
  put(encoded_part(ctx, job, masks.data(), false), channels, before);
  const Tensor mask = mask_of_cells(ctx, masks.data(), ctx[length], grid, before);
  give_wan<WanVaceToVideo>(ctx, whole,
                           {{},
                            {{"vace_frames", value_of(frames)},
                             {"vace_mask", value_of(mask)},
                             {"vace_strength", value_of(double(ctx[strength]))}}});
  ctx[trim_latent] = before;
}

void WanVaceToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanVaceToVideo>(question);
  const auto all = question[length];
  if (!job || !all) return;
  const std::int64_t frames = job->grid.pixel_frames();
  for (const auto* port : {&control_video, &reference_image}) {
    const auto shape = question.shape(*port);
    if (shape && shape->size() == 4) tell_pixels(question, *shape, *job, frames);
  }
  question.host_scratch(sizeof(float) *
                        std::uint64_t(*all * job->pixels.height * job->pixels.width));
  WanJob whole = *job;
  if (question.shape(reference_image)) {
    ++whole.grid.frames;
    question.known(trim_latent, "", value_of(std::int64_t{1}));
    infer_encoded_video(question, *question[vae], job->grid, 1);
  }
  for (int part = 0; part < 2; ++part)
    infer_encoded_video(question, *question[vae], job->grid, frames);
  Shape latents = whole.grid.shape(1), mask = latents;
  latents[1] *= 2;
  mask[1] = kVaceCell * kVaceCell;
  ToldFields told;
  told.vace = blocks::VaceShapes{tensor_info(HEDDLE_F32, latents), tensor_info(HEDDLE_F32, mask)};
  tell_wan<WanVaceToVideo>(question, whole, told);
}

}  // namespace heddle::vae
