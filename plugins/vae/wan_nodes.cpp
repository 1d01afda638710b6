#include "plugins/vae/wan_nodes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <heddle/ops.hpp>

#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

// Those of two pictures behind each other.
Value both_seen(Context& ctx, const Value& first, const Value& last) {
  const Tensor a = first.get<Tensor>("penultimate", {}), b = last.get<Tensor>("penultimate", {});
  if (!a && !b) return first;  // of a tower without these: who reads them says so
  if (!a || !b || a.rank() != 3 || b.rank() != 3 || a.size(0) != b.size(0) ||
      a.size(2) != b.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "clip_vision_start_image and clip_vision_end_image: they are not of one tower of "
                "CLIP and as many pictures. See both with clip_vision_h.");
  const std::int64_t tokens = a.size(1), all = tokens + b.size(1);
  const Tensor both = ctx.make({a.size(0), all, a.size(2)}, HEDDLE_F32);
  ops::copy_into(ctx, a, both.slice(1, 0, tokens));
  ops::copy_into(ctx, b, both.slice(1, tokens, all));
  return Record().set("penultimate", value_of(both)).value();
}

// What WanFirstLastFrameToVideo and WanFunInpaintToVideo have in common: the frames, and which of
// the four in each of the latent's are given. ComfyUI counts three more behind the first ones: the
// latent's first frame holds one of pixels.
template <class Node>
GivenFields first_and_last(Context& ctx, const WanJob& job) {
  const VideoGrid& grid = job.grid;
  const std::int64_t length = ctx[Node::length], numbers = grid.frames * kFramesOfCell;
  FrameStrip strip(ctx, ctx[Node::vae], grid.pixel_frames(), job.pixels);
  std::int64_t given_to = 0, given_from = numbers;
  if (ctx.has(Node::start_image)) {
    const Tensor pictures = ctx[Node::start_image];
    const std::int64_t count = std::min(pictures_shape(pictures.shape(), "start_image")[0], length);
    strip.put(pictures, "start_image", 0, count, 0);
    given_to = count + kFramesOfCell - 1;
  }
  if (ctx.has(Node::end_image)) {
    const Tensor pictures = ctx[Node::end_image];
    const std::int64_t all = pictures_shape(pictures.shape(), "end_image")[0],
                       count = std::min(all, length);
    // Of a length that is no multiple of four and one, frames behind the last whole four are lost.
    const std::int64_t at = length - count;
    strip.put(pictures, "end_image", all - count, count, at);
    given_from = numbers - count;
  }
  return {{{"concat_latent_image", value_of(strip.encoded())},
           {"concat_mask",
            mask_of_frames(ctx, grid, kFramesOfCell, [&](std::int64_t t, std::int64_t c) {
              const std::int64_t number = t * kFramesOfCell + c;
              return number < given_to || number >= given_from;
            })}}};
}
template <class Node>
ToldFields told_first_and_last(Infer& question, const WanJob& job) {
  Shape mask = job.grid.shape(1);
  mask[1] = kFramesOfCell;
  for (const auto* port : {&Node::start_image, &Node::end_image})
    if (const auto shape = question.shape(*port); shape && shape->size() == 4)
      tell_pixels(question, *shape, job, job.grid.pixel_frames());
  infer_encoded_video(question, *question[Node::vae], job.grid, job.grid.pixel_frames());
  return {job.grid.shape(1), mask, {}};
}

}  // namespace

void WanImageToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<WanImageToVideo>(ctx);
  GivenFields fields;
  if (ctx.has(start_image)) {
    const Tensor pictures = ctx[start_image];
    const std::int64_t count =
        std::min(pictures_shape(pictures.shape(), "start_image")[0], ctx[length]);
    FrameStrip strip(ctx, ctx[vae], job.grid.pixel_frames(), job.pixels);
    strip.put(pictures, "start_image", 0, count, 0);
    if (ctx.has(ref_pad_image)) strip.repeat(ctx[ref_pad_image], "ref_pad_image", count);
    fields.set.emplace_back("concat_latent_image", value_of(strip.encoded()));
    const std::int64_t given = latent_frames_of(count);
    fields.set.emplace_back(
        "concat_mask",
        mask_of_frames(ctx, job.grid, 1, [&](std::int64_t t, std::int64_t) { return t < given; }));
  }
  set_seen<WanImageToVideo>(ctx, fields);
  give_wan<WanImageToVideo>(ctx, job, fields);
}

void WanImageToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanImageToVideo>(question);
  if (!job) return;
  ToldFields told;
  if (const auto shape = question.shape(start_image); shape && shape->size() == 4) {
    told.image = told.mask = job->grid.shape(1);
    (*told.mask)[1] = 1;
    tell_pixels(question, *shape, *job, job->grid.pixel_frames());
    infer_encoded_video(question, *question[vae], job->grid, job->grid.pixel_frames());
  }
  told.seen = told_seen<WanImageToVideo>(question);
  tell_wan<WanImageToVideo>(question, *job, told);
}

void WanFirstLastFrameToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<WanFirstLastFrameToVideo>(ctx);
  GivenFields fields = first_and_last<WanFirstLastFrameToVideo>(ctx, job);
  if (ctx.has(clip_vision_output) && ctx.has(clip_vision_end))
    fields.set.emplace_back(kVisionOutput,
                            both_seen(ctx, ctx[clip_vision_output], ctx[clip_vision_end]));
  else if (ctx.has(clip_vision_end))
    fields.set.emplace_back(kVisionOutput, ctx[clip_vision_end]);
  else
    set_seen<WanFirstLastFrameToVideo>(ctx, fields);
  give_wan<WanFirstLastFrameToVideo>(ctx, job, fields);
}

void WanFirstLastFrameToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanFirstLastFrameToVideo>(question);
  if (!job) return;
  ToldFields told = told_first_and_last<WanFirstLastFrameToVideo>(question, *job);
  told.seen = told_seen<WanFirstLastFrameToVideo>(question);
  const auto last = question.tensor(clip_vision_end, "penultimate");
  if (told.seen && last && told.seen->states.rank == 3 && last->rank == 3)
    told.seen->states = tensor_info(
        HEDDLE_F32,
        {told.seen->states.shape[0], told.seen->states.shape[1] + last->shape[1], last->shape[2]});
  else if (last)
    told.seen = blocks::SeenShapes{*last, "penultimate"};
  tell_wan<WanFirstLastFrameToVideo>(question, *job, told);
}

void WanFunInpaintToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<WanFunInpaintToVideo>(ctx);
  GivenFields fields = first_and_last<WanFunInpaintToVideo>(ctx, job);
  set_seen<WanFunInpaintToVideo>(ctx, fields);
  give_wan<WanFunInpaintToVideo>(ctx, job, fields);
}

void WanFunInpaintToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanFunInpaintToVideo>(question);
  if (!job) return;
  ToldFields told = told_first_and_last<WanFunInpaintToVideo>(question, *job);
  told.seen = told_seen<WanFunInpaintToVideo>(question);
  tell_wan<WanFunInpaintToVideo>(question, *job, told);
}

// The followed video, then the given frames: each in the channels of a latent.
void WanFunControlToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<WanFunControlToVideo>(ctx);
  const VideoGrid& grid = job.grid;
  const Tensor both = model_zeros(ctx, Autoencoder(ctx[vae]), grid, 2);
  const auto add = [&](const Tensor& pictures, const char* name, std::int64_t channel) {
    const std::int64_t count = std::min(pictures_shape(pictures.shape(), name)[0], ctx[length]),
                       frames = latent_frames_of(count);
    FrameStrip strip(ctx, ctx[vae], 1 + (frames - 1) * kFramesOfCell, job.pixels);
    strip.put(pictures, name, 0, count, 0);
    ops::copy_into(ctx, strip.encoded(),
                   both.slice(1, channel, channel + grid.channels).slice(2, 0, frames));
  };
  if (ctx.has(start_image)) add(ctx[start_image], "start_image", grid.channels);
  if (ctx.has(control_video)) add(ctx[control_video], "control_video", 0);
  GivenFields fields{{{"concat_latent_image", value_of(both)}}};
  set_seen<WanFunControlToVideo>(ctx, fields);
  give_wan<WanFunControlToVideo>(ctx, job, fields);
}

void WanFunControlToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanFunControlToVideo>(question);
  const auto all = question[length];
  if (!job || !all) return;
  for (const auto* port : {&start_image, &control_video}) {
    const auto shape = question.shape(*port);
    if (!shape || shape->size() != 4) continue;
    const std::int64_t frames =
        1 + (latent_frames_of(std::min((*shape)[0], *all)) - 1) * kFramesOfCell;
    tell_pixels(question, *shape, *job, frames);
    infer_encoded_video(question, *question[vae], job->grid, frames);
  }
  Shape image = job->grid.shape(1);
  image[1] *= 2;
  tell_wan<WanFunControlToVideo>(question, *job,
                                 {image, {}, told_seen<WanFunControlToVideo>(question)});
}

}  // namespace heddle::vae
