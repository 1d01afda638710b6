#include "animate_input.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "conditioning.h"
#include "host_latent.h"
#include "vace_input.h"

namespace heddle::samplers {
namespace {

constexpr std::size_t kVideoAxes = 5, kVideoRows = 3, kVideoColumns = 4;
constexpr std::int64_t kFaceColours = 3;

bool fits_point(const Shape& pose, std::int64_t channels, const ConcatPlace& place) {
  return place.grid.size() == 3 && pose.size() == kVideoAxes && pose[1] == channels &&
         pose[kVideoRows] == place.grid[1] && pose[kVideoColumns] == place.grid[2] &&
         std::ranges::count(pose, 0) == 0;
}

bool fits_model(const Shape& face, std::int64_t side) {
  return face.size() == kVideoAxes && face[1] == kFaceColours && face[kVideoRows] == side &&
         face[kVideoColumns] == side && std::ranges::count(face, 0) == 0;
}

std::int64_t face_side(const Value& settings) { return settings.get<std::int64_t>("face_side", 0); }

}  // namespace

void refuse_poses(const Value& entry, const Value& model) {
  const bool follows = model_takes(model, "pose_context");
  if (follows && entry.has(kPoseLatent) && !entry.has(kPoseText))
    throw Error(HEDDLE_UNSUPPORTED,
                "the conditioning has poses without a text of their own (WanAnimateToVideo), which "
                "Wan Animate 2 does not follow. Use WanAnimate2ToVideo.");
  if (!entry.has(kPoseText) || follows) return;
  throw Error(HEDDLE_UNSUPPORTED,
              "the conditioning has poses (WanAnimate2ToVideo), which the model is not told to "
              "follow. Use Wan Animate 2, and put WanAnimate2Cache behind its loader.");
}

Tensor pose_of(Context& ctx, const Value& entry, const LatentFormat& format,
               const ConcatPlace& place) {
  const Tensor latent = entry.field(kPoseLatent).as<Tensor>();
  if (!fits_point(latent.shape(), format.channels, place))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'pose_video_latent' is " + shape_text(latent.shape()) +
                    ", the model reads " + std::to_string(format.channels) +
                    " channels of frames as large as those of the latent that is drawn, of " +
                    shape_text(place.grid) + ". Take both from one WanAnimateToVideo.");
  if (!place.is_of_all_frames())
    throw Error(HEDDLE_UNSUPPORTED,
                "a conditioning has poses (WanAnimateToVideo) and an area of a part of the frames. "
                "Leave one of the two out.");
  const Tensor rows = fit_batch(ctx, latent, place.items);
  const Shape begin = place.box ? place.box->begin : Shape{0, 0, 0},
              size = place.box ? place.box->size : place.grid;
  const Tensor part =
      rows.slice(3, begin[1], begin[1] + size[1]).slice(4, begin[2], begin[2] + size[2]);
  const Tensor made = ctx.make(part.shape(), HEDDLE_F32);
  for (std::int64_t row = 0; row < made.size(0); ++row)
    to_model_units(ctx, part.slice(0, row, row + 1), format, made.slice(0, row, row + 1));
  return made;
}

std::optional<Shape> pose_shape(const blocks::EntryShapes& entry, const Value& settings,
                                const ConcatPlace& place) {
  Shape pose = blocks::shape_of(*entry.pose);
  if (!fits_point(pose, settings.get<std::int64_t>("latent_channels", 0), place) ||
      !place.is_of_all_frames())
    return {};
  pose[0] = fitted_rows(pose[0], place.items);
  if (place.box) std::copy_n(place.box->size.begin() + 1, 2, pose.begin() + kVideoRows);
  return pose;
}

Tensor face_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place) {
  const Tensor face = entry.field(kFacePixels).as<Tensor>();
  if (!fits_model(face.shape(), face_side(settings)))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'face_video_pixels' is " + shape_text(face.shape()) +
                    ", the model reads pictures of 3 colours and " +
                    std::to_string(face_side(settings)) +
                    " pixels a side. Give it what WanAnimateToVideo makes.");
  return fit_batch(ctx, face, place.items);
}

std::optional<Shape> face_shape(const blocks::EntryShapes& entry, const Value& settings,
                                const ConcatPlace& place) {
  Shape face = blocks::shape_of(*entry.face);
  if (!fits_model(face, face_side(settings))) return {};
  face[0] = fitted_rows(face[0], place.items);
  return face;
}

}  // namespace heddle::samplers
