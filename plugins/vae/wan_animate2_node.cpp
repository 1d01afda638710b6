#include "plugins/vae/wan_animate2_node.h"

#include <algorithm>
#include <optional>

#include <heddle/ops.hpp>

#include "plugins/vae/pose_ranges.h"
#include "plugins/vae/wan_animate_part.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Animate2 = WanAnimate2ToVideo;

constexpr std::int64_t kContinuedPictures = 1;  // pictures
constexpr const char* kPoseFields[] = {"pose_video_latent", "pose_cross_attn",
                                       "pose_clip_vision_output"};

void refuse_pose_strength(double strength, const char* name) {
  if (strength != 1)
    throw Error(HEDDLE_UNSUPPORTED, std::string(name) + ": " + std::to_string(strength) +
                                        " is not supported, only 1 is. Set it to 1.");
}

Tensor shown_frame(Context& ctx, const WanJob& job) {
  FrameStrip strip(ctx, ctx[Animate2::vae], 1, job.pixels, blocks::Resampling::area);
  strip.put(ctx[Animate2::reference_image], "reference_image", 0, 1, 0);
  return strip.encoded();
}

Tensor continued_frames(Context& ctx, const WanJob& job, const AnimatePart& part) {
  FrameStrip strip(ctx, ctx[Animate2::vae], job.grid.pixel_frames(), job.pixels,
                   blocks::Resampling::area);
  if (part.continued > 0) {
    const Tensor pictures = ctx[Animate2::continue_motion];
    strip.put(pictures, "continue_motion", pictures.size(0) - part.continued, part.continued, 0);
  }
  return strip.encoded();
}

// What goes with the poses: a text and what CLIP saw, of their own or those of the video.
GivenFields pose_fields(Context& ctx, const Tensor& latent) {
  GivenFields poses;
  const Value texts =
      ctx.has(Animate2::positive_pose) ? ctx[Animate2::positive_pose] : ctx[Animate2::positive];
  if (texts.count() == 0 || !texts.item(0).has("cross_attn"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "positive_pose: it holds no text. Link a text encoder's output.");
  poses.set.emplace_back(kPoseFields[0], value_of(latent));
  poses.set.emplace_back(kPoseFields[1], texts.item(0).field("cross_attn"));
  if (ctx.has(Animate2::clip_vision_output_pose))
    poses.set.emplace_back(kPoseFields[2], ctx[Animate2::clip_vision_output_pose]);
  else if (ctx.has(Animate2::clip_vision_output))
    poses.set.emplace_back(kPoseFields[2], ctx[Animate2::clip_vision_output]);
  return poses;
}

}  // namespace

void WanAnimate2ToVideo::execute(Context& ctx) {
  refuse_pose_strength(ctx[pose_strength], "pose_strength");
  refuse_pose_strength(ctx[reference_strength], "reference_image_strength");
  WanJob job = wan_job<Animate2>(ctx);
  const VideoGrid grid = job.grid;
  const AnimatePart part = AnimatePart::of(ctx[length], ctx[offset], kContinuedPictures,
                                           picture_count(ctx, continue_motion, "continue_motion"));
  const std::int64_t before = ctx.has(reference_image) ? 1 : 0;
  job.grid.frames += before;
  const Tensor both = ctx.make(job.grid.shape(1), HEDDLE_F32);
  const WanJob video{grid, job.pixels};
  if (before > 0) ops::copy_into(ctx, shown_frame(ctx, video), both.slice(2, 0, before));
  ops::copy_into(ctx, continued_frames(ctx, video, part),
                 both.slice(2, before, before + grid.frames));
  const std::int64_t known = before + latent_frames_of(part.continued);
  GivenFields fields;
  set_seen<Animate2>(ctx, fields);
  fields.set.emplace_back("concat_latent_image", value_of(both));
  fields.set.emplace_back("concat_mask",
                          mask_of_frames(ctx, job.grid, kFramesOfCell,
                                         [&](std::int64_t t, std::int64_t) { return t < known; }));
  const std::int64_t count = part.followed(picture_count(ctx, pose_video, "pose_video"));
  const PoseRange range = count > 0 ? PoseRange{ctx[pose_start], ctx[pose_end]} : PoseRange();
  GivenFields poses;
  if (count > 0 && ctx[pose_end] > ctx[pose_start])
    poses = pose_fields(ctx, encoded_poses<Animate2>(ctx, video, part, count));
  ctx[positive_out] = in_pose_range(with_video_fields(ctx[positive], fields), range, poses);
  ctx[negative_out] = in_pose_range(with_video_fields(ctx[negative], fields), range, poses);
  ctx[latent] = empty_video(ctx, job.grid.shape(ctx[batch_size]));
  ctx[trim_latent] = before;
  ctx[trim_image] = part.trimmed;
  ctx[offset_out] = part.first + part.length;
}

void WanAnimate2ToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Animate2>(question);
  const auto all = question[length], from = question[offset], items = question[batch_size];
  const auto begin = question[pose_start], end = question[pose_end];
  if (!job || !all || !from || !items || !begin || !end) return;
  const auto count_of_pictures = [&](const Input<Tensor>& port) {
    const auto shape = question.shape(port);
    return shape && shape->size() == 4 ? (*shape)[0] : std::int64_t{0};
  };
  const AnimatePart part =
      AnimatePart::of(*all, *from, kContinuedPictures, count_of_pictures(continue_motion));
  const std::int64_t frames = job->grid.pixel_frames(),
                     before = count_of_pictures(reference_image) > 0 ? 1 : 0;
  std::uint64_t bytes = 0;
  for (const auto* port : {&reference_image, &pose_video, &continue_motion})
    if (const auto pictures = question.tensor(*port); pictures && pictures->rank == 4)
      bytes = std::max(bytes, strip_bytes(*pictures, job->pixels, frames));
  if (bytes > 0) question.host_scratch(bytes);
  const Value decoder = *question[vae];
  if (before > 0) infer_encoded_video(question, decoder, job->grid, 1);
  infer_encoded_video(question, decoder, job->grid, frames);
  const bool follows = part.followed(count_of_pictures(pose_video)) > 0 && *end > *begin;
  if (follows) infer_encoded_video(question, decoder, job->grid, frames);

  WanJob whole = *job;
  whole.grid.frames += before;
  Shape mask = whole.grid.shape(1);
  mask[1] = kFramesOfCell;
  auto pose_text = question.tensor(positive_pose, "0.cross_attn");
  if (!pose_text) pose_text = question.tensor(positive, "0.cross_attn");
  const auto seen = told_seen<Animate2>(question);
  auto pose_seen = blocks::seen_shapes(
      [&](const char* field) { return question.tensor(clip_vision_output_pose, field); });
  if (!pose_seen) pose_seen = seen;
  const PoseRange range = follows ? PoseRange{*begin, *end} : PoseRange();
  const auto change = [&](const auto& in, const auto& out) {
    std::vector<blocks::EntryShapes> entries;
    for (const blocks::EntryShapes& given : blocks::entry_shapes(question, in))
      each_pose_range(given.scope, range, [&](const Value& scope, bool has_poses) {
        blocks::EntryShapes entry = given;
        entry.scope = scope;
        entry.concat_image = tensor_info(HEDDLE_F32, whole.grid.shape(1));
        entry.concat_mask = tensor_info(HEDDLE_F32, mask);
        if (seen) entry.vision = seen;
        if (has_poses) {
          entry.pose = tensor_info(HEDDLE_F32, job->grid.shape(1));
          entry.pose_text = pose_text;
          entry.pose_seen = pose_seen;
        }
        entries.push_back(entry);
      });
    blocks::infer_entries(question, out, entries);
  };
  change(positive, positive_out);
  change(negative, negative_out);
  question.out(latent, "samples", HEDDLE_F32, whole.grid.shape(*items));
  question.known(trim_latent, "", value_of(before));
  question.known(trim_image, "", value_of(part.trimmed));
  question.known(offset_out, "", value_of(part.first + part.length));
}

}  // namespace heddle::vae
