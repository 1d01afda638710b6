#include "plugins/vae/hunyuan15_node.h"

#include <algorithm>
#include <optional>

#include <heddle/ops.hpp>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

// Of so many given frames of pixels, those that whole frames of the latent hold.
std::int64_t whole_pixel_frames(std::int64_t frames) {
  return 1 + (latent_frames_of(frames) - 1) * kFramesOfCell;
}

}  // namespace

// What is not given is 0 in the latent, not a grey picture's.
void HunyuanVideo15ImageToVideo::execute(Context& ctx) {
  using Node = HunyuanVideo15ImageToVideo;
  const WanJob job = wan_job<Node>(ctx);
  const VideoGrid& grid = job.grid;
  GivenFields fields;
  if (ctx.has(start_image)) {
    const Tensor pictures = ctx[start_image];
    const std::int64_t count = std::min(pictures_shape(pictures.shape(), "start_image")[0],
                                        ctx[length]),
                       given = latent_frames_of(count);
    FrameStrip strip(ctx, ctx[vae], whole_pixel_frames(count), job.pixels);
    strip.put(pictures, "start_image", 0, count, 0);
    const Tensor shown = ctx.make(grid.shape(1), HEDDLE_F32);
    ops::fill(ctx, shown, 0);
    ops::copy_into(ctx, strip.encoded(), shown.slice(2, 0, given));
    const Tensor mask = ctx.make_host({1, 1, grid.frames, grid.height, grid.width}, HEDDLE_F32);
    float* const numbers = mask.data<float>();
    std::fill_n(numbers, mask.count(), 1.0f);
    std::fill_n(numbers, given * grid.height * grid.width, 0.0f);
    fields.set = {{"concat_latent_image", value_of(shown)}, {"concat_mask", value_of(mask)}};
  }
  set_seen<Node>(ctx, fields);
  give_wan<Node>(ctx, job, fields);
}

void HunyuanVideo15ImageToVideo::infer(Infer& question) {
  using Node = HunyuanVideo15ImageToVideo;
  const std::optional<WanJob> job = told_job<Node>(question);
  const auto most = question[length];
  if (!job || !most) return;
  ToldFields told;
  if (const auto shape = question.shape(start_image); shape && shape->size() == 4) {
    told.image = told.mask = job->grid.shape(1);
    (*told.mask)[1] = 1;
    const std::int64_t frames = whole_pixel_frames(std::min((*shape)[0], *most));
    tell_pixels(question, *shape, *job, frames);
    infer_encoded_video(question, *question[vae], job->grid, frames);
  }
  told.seen = told_seen<Node>(question);
  tell_wan<Node>(question, *job, told);
}

}  // namespace heddle::vae
