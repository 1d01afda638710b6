#include "plugins/vae/wan_scail_node.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/pose_ranges.h"
#include "plugins/vae/scail_masks.h"
#include "plugins/vae/wan_animate_part.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Scail = WanSCAILToVideo;

constexpr const char *kInLine = "ref_mask_flag", *kPosesOf = "pose_video_latent",
                     *kMasksOfPoses = "driving_mask_28ch", *kMasksOfReferences = "ref_mask_28ch";

// How many pictures each input has; 0: there are none.
struct ScailCounts {
  std::int64_t poses, masks, previous;
};

// Which frames a part of a long video has.
struct ScailPart {
  std::int64_t anchors;       // pictures of the part before that begin it
  std::int64_t first, count;  // of poses and their masks; count: 0 of neither
  bool has_poses, has_masks;

  static ScailPart of(std::int64_t length, std::int64_t offset, std::int64_t most,
                      const ScailCounts& given) {
    ScailPart part{};
    part.anchors = std::min(given.previous, most);
    part.first = std::max<std::int64_t>(offset - part.anchors, 0);
    part.has_poses = given.poses > part.first;
    part.has_masks = given.masks > part.first;
    std::int64_t count = length;
    if (part.has_poses) count = std::min(count, given.poses - part.first);
    if (part.has_masks) count = std::min(count, given.masks - part.first);
    if (part.has_poses || part.has_masks)
      part.count = 1 + (latent_frames_of(count) - 1) * kFramesOfCell;
    return part;
  }
};

blocks::GridSize half_of(const blocks::GridSize& pixels) {
  return {pixels.height / 2, pixels.width / 2};
}

Tensor half_poses(Context& ctx, const WanJob& job, const ScailPart& part) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  FrameStrip strip(ctx, ctx[Scail::vae], part.count, half_of(job.pixels), blocks::Resampling::area);
  strip.put(ctx[Scail::pose_video], "pose_video", part.first, part.count, 0);
  const Tensor latent = strip.encoded();
  const double strength = ctx[Scail::pose_strength];
  return strength == 1 ? latent : ops::scale_clamp(ctx, latent, {strength, 0, -kAny, kAny});
}

// Each picture is a frame of its own.
void add_references(Context& ctx, const WanJob& job, GivenFields& fields) {
  const Tensor pictures = ctx[Scail::reference_image];
  const std::int64_t count = pictures_shape(pictures.shape(), "reference_image")[0];
  HostMemory memory(ctx);
  std::vector<std::pmr::vector<float>> persons;
  if (ctx[Scail::replacement_mode] && ctx.has(Scail::reference_image_mask))
    persons = shapes_of_persons(ctx, ctx[Scail::reference_image_mask], count, job.pixels, memory);
  for (std::int64_t i = 0; i < count; ++i) {
    FrameStrip strip(ctx, ctx[Scail::vae], 1, job.pixels, blocks::Resampling::bicubic);
    strip.put(pictures, "reference_image", i, 1, 0);
    if (!persons.empty()) strip.shade(persons[std::size_t(i)].data(), 0);
    fields.appended.emplace_back("reference_latents",
                                 Record().set("samples", value_of(strip.encoded())).value());
  }
  if (ctx.has(Scail::reference_image_mask))
    fields.set.emplace_back(kMasksOfReferences,
                            value_of(masks_of_references(ctx, ctx[Scail::reference_image_mask],
                                                         count, job.grid.frames, job.pixels)));
}

// Frames of the latent that are kept.
std::int64_t kept_frames(const WanJob& job, const ScailPart& part) {
  return std::min(latent_frames_of(part.anchors), job.grid.frames);
}

// Frames of pixels that begin it.
std::int64_t anchored_frames(const ScailPart& part) {
  return 1 + (latent_frames_of(part.anchors) - 1) * kFramesOfCell;
}

// A latent of zeros that begins with the frames before.
Value continued_video(Context& ctx, const WanJob& job, const ScailPart& part, std::int64_t items) {
  const Tensor pictures = ctx[Scail::previous_frames];
  FrameStrip strip(ctx, ctx[Scail::vae], anchored_frames(part), job.pixels,
                   blocks::Resampling::bicubic);
  strip.put(pictures, "previous_frames", pictures.size(0) - part.anchors, part.anchors, 0);
  const Tensor begin = strip.encoded(), samples = ctx.make(job.grid.shape(items), HEDDLE_F32);
  const std::int64_t kept = kept_frames(job, part);
  ops::fill(ctx, samples, 0);
  for (std::int64_t item = 0; item < items; ++item)
    ops::copy_into(ctx, begin.slice(2, 0, kept),
                   samples.slice(0, item, item + 1).slice(2, 0, kept));
  return Record()
      .set("samples", value_of(samples))
      .set("noise_mask",
           mask_of_frames(ctx, job.grid, 1, [&](std::int64_t t, std::int64_t) { return t < kept; }))
      .value();
}

// A batch of no frames is none.
std::int64_t previous_count(Context& ctx) {
  if (!ctx.has(Scail::previous_frames)) return 0;
  const Shape shape = ctx[Scail::previous_frames].shape();
  return !shape.empty() && shape[0] == 0 ? 0 : pictures_shape(shape, "previous_frames")[0];
}

// What is known of the pictures.
struct ScailTold {
  using Pictures = std::optional<heddle_tensor_info>;
  Pictures poses, masks, previous, references, reference_masks;

  explicit ScailTold(const Infer& question) {
    const auto pictures = [&](const Input<Tensor>& port) {
      const Pictures told = question.tensor(port);
      return told && told->rank == 4 ? told : Pictures();
    };
    poses = pictures(Scail::pose_video);
    masks = pictures(Scail::pose_video_mask);
    previous = pictures(Scail::previous_frames);
    references = pictures(Scail::reference_image);
    reference_masks = pictures(Scail::reference_image_mask);
  }
  static std::int64_t count(const Pictures& told) { return told ? told->shape[0] : 0; }

  // The most that execute() holds at a time in host memory.
  std::uint64_t bytes(const WanJob& job, const ScailPart& part, bool replaces) const {
    const blocks::GridSize half = half_of(job.pixels);
    std::uint64_t most = 0, persons = 0;
    if (replaces && reference_masks)
      persons =
          sizeof(float) * std::uint64_t(count(references) * job.pixels.height * job.pixels.width);
    if (part.has_poses) most = std::max(most, strip_bytes(*poses, half, part.count));
    if (part.has_masks) most = std::max(most, coloured_bytes(*masks, half));
    if (references) most = std::max(most, persons + strip_bytes(*references, job.pixels, 1));
    if (references && reference_masks)
      most = std::max(most, persons + coloured_bytes(*reference_masks, job.pixels));
    if (part.anchors > 0)
      most = std::max(most, strip_bytes(*previous, job.pixels, anchored_frames(part)));
    return most;
  }
};

}  // namespace

void WanSCAILToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<Scail>(ctx);
  const ScailPart part =
      ScailPart::of(ctx[length], ctx[offset], ctx[anchors],
                    {picture_count(ctx, pose_video, "pose_video"),
                     picture_count(ctx, pose_video_mask, "pose_video_mask"), previous_count(ctx)});
  GivenFields fields, poses;
  fields.set.emplace_back(kInLine, value_of(!ctx[replacement_mode]));
  if (ctx.has(reference_image)) add_references(ctx, job, fields);
  set_seen<Scail>(ctx, fields);
  if (part.has_masks)
    fields.set.emplace_back(
        kMasksOfPoses, value_of(masks_of_video(
                           ctx, {ctx[pose_video_mask], "pose_video_mask", part.first, part.count},
                           half_of(job.pixels))));
  const bool follows = part.has_poses && ctx[pose_end] > ctx[pose_start];
  if (follows) poses.set.emplace_back(kPosesOf, value_of(half_poses(ctx, job, part)));
  const PoseRange range = follows ? PoseRange{ctx[pose_start], ctx[pose_end]} : PoseRange();
  ctx[positive_out] = in_pose_range(with_video_fields(ctx[positive], fields), range, poses);
  ctx[negative_out] = in_pose_range(with_video_fields(ctx[negative], fields), range, poses);
  const std::int64_t items = ctx[batch_size];
  ctx[latent] = part.anchors > 0 ? continued_video(ctx, job, part, items)
                                 : empty_video(ctx, job.grid.shape(items));
  ctx[offset_out] = part.first + ctx[length];
}

void WanSCAILToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Scail>(question);
  const auto all = question[length], from = question[offset], items = question[batch_size],
             most = question[anchors];
  const auto begin = question[pose_start], end = question[pose_end];
  const auto replaces = question[replacement_mode];
  if (!job || !all || !from || !items || !most || !begin || !end) return;
  const ScailTold told(question);
  const ScailPart part = ScailPart::of(*all, *from, *most,
                                       {ScailTold::count(told.poses), ScailTold::count(told.masks),
                                        ScailTold::count(told.previous)});
  const std::int64_t references = ScailTold::count(told.references),
                     reference_masks = ScailTold::count(told.reference_masks);
  if (const std::uint64_t bytes = told.bytes(*job, part, replaces.value_or(true)); bytes > 0)
    question.host_scratch(bytes);
  const Value decoder = *question[vae];
  for (std::int64_t i = 0; i < references; ++i)
    infer_encoded_video(question, decoder, job->grid, 1);
  const blocks::GridSize half = half_of(job->pixels);
  const bool follows = part.has_poses && *end > *begin;
  std::optional<heddle_tensor_info> pose, pose_masks, masks;
  if (follows) {
    const VideoGrid grid = video_grid(*usable(decoder), half.width, half.height, part.count);
    infer_encoded_video(question, decoder, grid, part.count);
    pose = tensor_info(HEDDLE_F32, grid.shape(1));
  }
  if (part.anchors > 0) infer_encoded_video(question, decoder, job->grid, anchored_frames(part));
  const auto masks_shape = [](std::int64_t frames, const blocks::GridSize& pixels) {
    const blocks::GridSize cells = mask_cells(pixels);
    return tensor_info(HEDDLE_F32, {1, frames, kMaskChannels, cells.height, cells.width});
  };
  if (part.has_masks) pose_masks = masks_shape(latent_frames_of(part.count), half);
  if (references > 0 && reference_masks > 0)
    masks = masks_shape(references + job->grid.frames, job->pixels);
  const auto seen = told_seen<Scail>(question);
  const PoseRange range = follows ? PoseRange{*begin, *end} : PoseRange();
  const auto change = [&](const auto& in, const auto& out) {
    std::vector<blocks::EntryShapes> entries;
    for (const blocks::EntryShapes& given : blocks::entry_shapes(question, in))
      each_pose_range(given.scope, range, [&](const Value& scope, bool has_poses) {
        blocks::EntryShapes entry = given;
        Record record = scope.is(HEDDLE_KIND_RECORD) ? Record(scope) : Record();
        entry.scope = record.set(kInLine, value_of(!replaces.value_or(false))).value();
        for (std::int64_t i = 0; i < references; ++i)
          entry.references.push_back(tensor_info(HEDDLE_F32, [&] {
            Shape frame = job->grid.shape(1);
            frame[2] = 1;
            return frame;
          }()));
        if (seen) entry.vision = seen;
        if (pose_masks) entry.pose_masks = pose_masks;
        if (masks) entry.reference_masks = masks;
        if (has_poses) entry.pose = pose;
        entries.push_back(entry);
      });
    blocks::infer_entries(question, out, entries);
  };
  change(positive, positive_out);
  change(negative, negative_out);
  question.out(latent, "samples", HEDDLE_F32, job->grid.shape(*items));
  Shape mask = job->grid.shape(1);
  mask[1] = 1;
  if (part.anchors > 0) question.out(latent, "noise_mask", HEDDLE_F32, mask);
  // Frames before that are not known would move any other offset than 0.
  if (told.previous || *from == 0) question.known(offset_out, "", value_of(part.first + *all));
}

}  // namespace heddle::vae
