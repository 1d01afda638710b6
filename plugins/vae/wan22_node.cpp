#include "plugins/vae/wan22_node.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

// Frames of pixels that are given, as whole ones of the latent hold them.
std::int64_t given_frames(std::int64_t pictures, std::int64_t length) {
  return 1 + (latent_frames_of(std::min(pictures, length)) - 1) * kFramesOfCell;
}

// Items behind each other, equal to the first.
Tensor repeated(Context& ctx, const Tensor& first, std::int64_t items) {
  if (items == 1) return first;
  Shape shape = first.shape();
  shape[0] = items;
  const Tensor all = ctx.make(shape, HEDDLE_F32);
  for (std::int64_t i = 0; i < items; ++i) ops::copy_into(ctx, first, all.slice(0, i, i + 1));
  return all;
}

}  // namespace

void Wan22ImageToVideoLatent::execute(Context& ctx) {
  const WanJob job = wan_job<Wan22ImageToVideoLatent>(ctx);
  const VideoGrid& grid = job.grid;
  if (!ctx.has(start_image)) {
    // As in ComfyUI, whatever batch_size is.
    ctx[latent] = empty_video(ctx, grid.shape(1));
    return;
  }
  const Tensor pictures = ctx[start_image];
  const std::int64_t frames =
      given_frames(pictures_shape(pictures.shape(), "start_image")[0], ctx[length]);
  FrameStrip strip(ctx, ctx[vae], frames, job.pixels);
  strip.put(pictures, "start_image", 0, frames, 0);
  // What is not given is 0 in the model's units.
  const std::int64_t given = latent_frames_of(frames);
  Record made = latent_of(ctx, strip.encoded(), Autoencoder(ctx[vae]));
  const Tensor first = made.value().get<Tensor>("samples", {}),
               samples = ctx.make(grid.shape(1), HEDDLE_F32);
  ops::fill(ctx, samples, 0);
  ops::copy_into(ctx, first, samples.slice(2, 0, given));
  const std::int64_t items = ctx[batch_size], cells = grid.height * grid.width;
  const Tensor mask = ctx.make_host({items, 1, grid.frames, grid.height, grid.width}, HEDDLE_F32);
  float* to = mask.data<float>();
  for (std::int64_t i = 0; i < items * grid.frames; ++i)
    to = std::fill_n(to, cells, i % grid.frames < given ? 0.0f : 1.0f);
  ctx[latent] = made.set("samples", value_of(repeated(ctx, samples, items)))
                    .set("noise_mask", value_of(mask))
                    .value();
}

void Wan22ImageToVideoLatent::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Wan22ImageToVideoLatent>(question);
  const auto items = question[batch_size], all = question[length];
  if (!job || !items || !all) return;
  const auto shape = question.shape(start_image);
  if (!shape || shape->size() != 4) {
    question.out(latent, "samples", HEDDLE_F32, job->grid.shape(1));
    return;
  }
  const std::int64_t frames = given_frames((*shape)[0], *all);
  tell_pixels(question, *shape, *job, frames);
  infer_encoded_video(question, *question[vae], job->grid, frames);
  Shape mask = job->grid.shape(*items);
  mask[1] = 1;
  question.out(latent, "samples", HEDDLE_F32, job->grid.shape(*items));
  question.out(latent, "noise_mask", HEDDLE_F32, mask);
}

}  // namespace heddle::vae
