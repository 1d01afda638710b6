#include "plugins/vae/wan_animate_node.h"

#include <algorithm>
#include <optional>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/wan_animate_part.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Animate = WanAnimateToVideo;

constexpr std::int64_t kFaceSide = 512;
constexpr blocks::GridSize kFaceSize{kFaceSide, kFaceSide};

// Frames of a strip that hold so many pictures, as whole frames of a latent.
std::int64_t whole_pixels(std::int64_t pictures) {
  return 1 + (latent_frames_of(pictures) - 1) * kFramesOfCell;
}

// The reference pictures, or a black one.
Tensor encoded_reference_pictures(Context& ctx, const WanJob& job) {
  const std::int64_t given = std::min(
      picture_count(ctx, Animate::reference_image, "reference_image"), ctx[Animate::length]);
  FrameStrip strip(ctx, ctx[Animate::vae], whole_pixels(std::max<std::int64_t>(given, 1)),
                   job.pixels, blocks::Resampling::area);
  if (given > 0)
    strip.put(ctx[Animate::reference_image], "reference_image", 0, given, 0);
  else
    strip.fill(0);
  return strip.encoded();
}

// What is known of the video, and grey.
Tensor encoded_known(Context& ctx, const WanJob& job, const AnimatePart& part) {
  FrameStrip strip(ctx, ctx[Animate::vae], job.grid.pixel_frames(), job.pixels,
                   blocks::Resampling::area);
  if (ctx.has(Animate::continue_motion)) {
    const Tensor pictures = ctx[Animate::continue_motion];
    strip.put(pictures, "continue_motion", pictures.size(0) - part.continued, part.continued, 0);
  }
  const std::int64_t behind =
      part.followed(picture_count(ctx, Animate::background_video, "background_video"));
  if (behind > part.trimmed)
    strip.put(ctx[Animate::background_video], "background_video", part.first + part.trimmed,
              behind - part.trimmed, part.trimmed);
  return strip.encoded();
}

// (1, 3, S, 512, 512), from -1 to 1.
Tensor face_pixels(Context& ctx, const AnimatePart& part, std::int64_t count) {
  const Tensor pictures = ctx[Animate::face_video];
  const Shape shape = pictures_shape(pictures.shape(), "face_video");
  const std::int64_t channels = shape[3], step = shape[1] * shape[2] * channels,
                     plane = kFaceSide * kFaceSide;
  HostMemory memory(ctx);
  const HostFloats floats(ctx, pictures);
  std::pmr::vector<float> resized(std::size_t(checked_product({plane, channels}, "face_video")),
                                  &memory);
  const Tensor made = ctx.make_host({1, kColours, count, kFaceSide, kFaceSide}, HEDDLE_F32);
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const auto whole = blocks::Source::of(floats.data() + (part.first + i) * step,
                                          {1, {shape[1], shape[2]}, channels});
    blocks::resample(blocks::centre_cropped(whole, kFaceSize), kFaceSize, blocks::Resampling::area,
                     resized.data(), memory);
    for (std::int64_t c = 0; c < kColours; ++c) {
      float* const to = made.data<float>() + (c * count + i) * plane;
      for (std::int64_t p = 0; p < plane; ++p)
        to[p] = 2 * resized[std::size_t(p * channels + c)] - 1;
    }
  }
  return made;
}

// What a negative conditioning is given in the place of a face: black ones.
Tensor black_face(Context& ctx, std::int64_t count) {
  const Tensor made = ctx.make_host({1, kColours, count, kFaceSide, kFaceSide}, HEDDLE_F32);
  std::fill_n(made.data<float>(), made.count(), -1.0f);
  return made;
}

// (1, 4, before + T, h, w): 0 where it is known. Of the latent's frame t the kth number is of frame
// 4 t + k of pixels, as in ComfyUI: though the first holds a single one.
Tensor mask_of_known(Context& ctx, const WanJob& job, const AnimatePart& part,
                     std::int64_t before) {
  const blocks::GridSize cells{job.grid.height, job.grid.width};
  const std::int64_t plane = cells.height * cells.width, all = before + job.grid.frames;
  const Tensor mask = ctx.make_host({1, kFramesOfCell, all, cells.height, cells.width}, HEDDLE_F32);
  std::fill_n(mask.data<float>(), mask.count(), 0.0f);
  const auto at = [&](std::int64_t frame) {
    return mask.data<float>() +
           (frame % kFramesOfCell * all + before + frame / kFramesOfCell) * plane;
  };
  const std::int64_t frames = job.grid.frames * kFramesOfCell;
  for (std::int64_t i = latent_frames_of(part.continued) * kFramesOfCell; i < frames; ++i)
    std::fill_n(at(i), plane, 1.0f);
  if (!ctx.has(Animate::character_mask)) return mask;
  const Tensor given = ctx[Animate::character_mask];
  if (given.rank() != 3 || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "character_mask: masks are (batch, height, width), these have " +
                    std::to_string(given.rank()) + " axes and " + std::to_string(given.count()) +
                    " numbers. Link a MASK.");
  const bool is_single = given.size(0) == 1;
  const std::int64_t count = is_single ? part.length : part.followed(given.size(0));
  const blocks::GridSize size{given.size(1), given.size(2)};
  HostMemory memory(ctx);
  const HostFloats floats(ctx, given);
  for (std::int64_t i = part.trimmed; i < count; ++i) {
    const float* const from =
        floats.data() + (is_single ? 0 : part.first + i) * size.height * size.width;
    const auto one = blocks::Source::of(from, {1, size, 1});
    blocks::resample(blocks::centre_cropped(one, cells), cells, blocks::Resampling::nearest_exact,
                     at(i), memory);
  }
  return mask;
}

}  // namespace

void WanAnimateToVideo::execute(Context& ctx) {
  WanJob job = wan_job<WanAnimateToVideo>(ctx);
  const VideoGrid grid = job.grid;
  const AnimatePart part = AnimatePart::of(ctx[length], ctx[offset], ctx[continued_most],
                                           picture_count(ctx, continue_motion, "continue_motion"));
  const Tensor shown = encoded_reference_pictures(ctx, job);
  const std::int64_t before = shown.size(2);
  GivenFields fields;
  set_seen<WanAnimateToVideo>(ctx, fields);
  if (const std::int64_t count = part.followed(picture_count(ctx, pose_video, "pose_video")))
    fields.set.emplace_back("pose_video_latent",
                            value_of(encoded_poses<Animate>(ctx, job, part, count)));
  const Tensor known = encoded_known(ctx, job, part);
  const Tensor both =
      ctx.make({1, grid.channels, before + grid.frames, grid.height, grid.width}, HEDDLE_F32);
  ops::copy_into(ctx, shown, both.slice(2, 0, before));
  ops::copy_into(ctx, known, both.slice(2, before, before + grid.frames));
  fields.set.emplace_back("concat_latent_image", value_of(both));
  fields.set.emplace_back("concat_mask", value_of(mask_of_known(ctx, job, part, before)));
  GivenFields other = fields;
  if (const std::int64_t count = part.followed(picture_count(ctx, face_video, "face_video"))) {
    fields.set.emplace_back("face_video_pixels", value_of(face_pixels(ctx, part, count)));
    other.set.emplace_back("face_video_pixels", value_of(black_face(ctx, count)));
  }
  job.grid.frames += before;
  ctx[positive_out] = with_video_fields(ctx[positive], fields);
  ctx[negative_out] = with_video_fields(ctx[negative], other);
  ctx[latent] = empty_video(ctx, job.grid.shape(ctx[batch_size]));
  ctx[trim_latent] = before;
  ctx[trim_image] = part.trimmed;
  ctx[offset_out] = part.first + part.length;
}

void WanAnimateToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<WanAnimateToVideo>(question);
  const auto all = question[length], most = question[continued_most], from = question[offset];
  if (!job || !all || !most || !from) return;
  const auto count_of_pictures = [&](const Input<Tensor>& port) {
    const auto shape = question.shape(port);
    return shape && shape->size() == 4 ? (*shape)[0] : std::int64_t{0};
  };
  const AnimatePart part = AnimatePart::of(*all, *from, *most, count_of_pictures(continue_motion));
  const std::int64_t frames = job->grid.pixel_frames(),
                     shown = std::clamp<std::int64_t>(count_of_pictures(reference_image), 1, *all),
                     before = latent_frames_of(shown);
  for (const auto* port : {&reference_image, &pose_video, &background_video, &continue_motion}) {
    const auto shape = question.shape(*port);
    if (shape && shape->size() == 4) tell_pixels(question, *shape, *job, frames);
  }
  ToldFields told;
  told.seen = told_seen<WanAnimateToVideo>(question);
  infer_encoded_video(question, *question[vae], job->grid, whole_pixels(shown));
  if (part.followed(count_of_pictures(pose_video)) > 0) {
    infer_encoded_video(question, *question[vae], job->grid, frames);
    told.pose = tensor_info(HEDDLE_F32, job->grid.shape(1));
  }
  infer_encoded_video(question, *question[vae], job->grid, frames);
  if (const std::int64_t count = part.followed(count_of_pictures(face_video))) {
    const Shape shape = *question.shape(face_video);
    told.face = tensor_info(HEDDLE_F32, {1, kColours, count, kFaceSide, kFaceSide});
    const blocks::Grids grids{1, {shape[1], shape[2]}, shape[3]};
    question.host_scratch(blocks::resampling_bytes(grids, kFaceSize) +
                          sizeof(float) * std::uint64_t(kFaceSide * kFaceSide * shape[3]));
  }
  WanJob whole = *job;
  whole.grid.frames += before;
  told.image = told.mask = whole.grid.shape(1);
  (*told.mask)[1] = kFramesOfCell;
  tell_wan<WanAnimateToVideo>(question, whole, told);
  question.known(trim_latent, "", value_of(before));
  question.known(trim_image, "", value_of(part.trimmed));
  question.known(offset_out, "", value_of(part.first + part.length));
}

}  // namespace heddle::vae
