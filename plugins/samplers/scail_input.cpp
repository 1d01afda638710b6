#include "scail_input.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "animate_input.h"
#include "conditioning.h"
#include "host_latent.h"
#include "vace_input.h"

namespace heddle::samplers {
namespace {

constexpr std::size_t kScailAxes = 5;
constexpr std::int64_t kOfReference = 2;  // the axis of its frames

bool sees_whole_video(const ConcatPlace& place) {
  return place.grid.size() == 3 && (!place.box || place.box->size == place.grid);
}

void refuse_part_of_video(const ConcatPlace& place) {
  if (sees_whole_video(place)) return;
  throw Error(HEDDLE_UNSUPPORTED,
              "a conditioning has pictures, poses or masks (WanSCAILToVideo) and an area, or the "
              "latent has no frames. Leave the area out, and take the latent of the same node.");
}

std::int64_t mask_channels(const Value& settings) {
  return settings.get<std::int64_t>(kMaskChannels, 0);
}
bool is_video_of(const Shape& shape, std::int64_t channels) {
  return shape.size() == kScailAxes && shape[1] == channels && std::ranges::count(shape, 0) == 0;
}
bool are_masks_of(const Shape& shape, const Value& settings) {
  return shape.size() == kScailAxes && shape[2] == mask_channels(settings) &&
         std::ranges::count(shape, 0) == 0;
}

// Of a latent of pictures, its axes with one of frames.
Shape with_one_frame(Shape shape) {
  if (shape.size() == kScailAxes - 1) shape.insert(shape.begin() + kOfReference, 1);
  return shape;
}
bool fits_video(const Shape& shape, const Value& settings, const ConcatPlace& place) {
  return is_video_of(shape, settings.get<std::int64_t>("latent_channels", 0)) &&
         place.grid.size() == 3 && shape[3] == place.grid[1] && shape[4] == place.grid[2];
}

// What is shown, the first one last.
template <class T>
std::vector<T> with_first_last(std::vector<T> list) {
  if (!list.empty()) std::rotate(list.begin(), list.begin() + 1, list.end());
  return list;
}

}  // namespace

bool lies_apart(const Value& entry) { return !entry.get<bool>(kReferencesInLine, true); }

Tensor half_pose_of(Context& ctx, const Value& entry, const Value& settings,
                    const ConcatPlace& place) {
  const LatentFormat format = latent_format(settings);
  const Tensor latent = entry.field(kPoseLatent).as<Tensor>();
  if (!is_video_of(latent.shape(), format.channels))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'pose_video_latent' is " + shape_text(latent.shape()) +
                    ", the model reads videos of " + std::to_string(format.channels) +
                    " channels. Take it from WanSCAILToVideo.");
  refuse_part_of_video(place);
  const Tensor rows = fit_batch(ctx, latent, place.items),
               made = ctx.make(rows.shape(), HEDDLE_F32);
  for (std::int64_t row = 0; row < made.size(0); ++row)
    to_model_units(ctx, rows.slice(0, row, row + 1), format, made.slice(0, row, row + 1));
  return made;
}

Tensor coloured_masks_of(Context& ctx, const Value& entry, const char* field, const Value& settings,
                         const ConcatPlace& place) {
  const Tensor masks = entry.field(field).as<Tensor>();
  if (!are_masks_of(masks.shape(), settings))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the conditioning's '") + field + "' is " + shape_text(masks.shape()) +
                    ", the model reads (batch, frames, " + std::to_string(mask_channels(settings)) +
                    ", height, width). Take it from WanSCAILToVideo.");
  refuse_part_of_video(place);
  return fit_batch(ctx, masks, place.items);
}

Tensor stacked_references_of(Context& ctx, const Value& entry, const Value& settings,
                             const ConcatPlace& place) {
  const LatentFormat format = latent_format(settings);
  refuse_part_of_video(place);
  const Value list = entry.field("reference_latents");
  struct Shown {
    Tensor latent;
    bool is_scaled;
  };
  std::vector<Shown> shown;
  Shape all{1, format.channels, 0, place.grid[1], place.grid[2]};
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value record = list.item(i);
    const Tensor samples = record.field("samples").as<Tensor>();
    const Shape shape = with_one_frame(samples.shape());
    if (!fits_video(shape, settings, place))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "a reference picture of the conditioning is " + shape_text(samples.shape()) +
                      ", the model reads " + std::to_string(format.channels) +
                      " channels of the size of the latent that is drawn, " +
                      shape_text(place.grid) + ". Take both from one WanSCAILToVideo.");
    const Tensor rows = fit_batch(ctx, samples.reshape(shape), place.items);
    all[0] = std::max(all[0], rows.size(0));
    all[kOfReference] += rows.size(kOfReference);
    shown.push_back({rows, record.get<bool>("scaled", false)});
  }
  const Tensor made = ctx.make(all, HEDDLE_F32);
  std::int64_t at = 0;
  for (const Shown& one : with_first_last(std::move(shown))) {
    const std::int64_t end = at + one.latent.size(kOfReference);
    for (std::int64_t row = 0; row < all[0]; ++row) {
      const std::int64_t from = one.latent.size(0) == 1 ? 0 : row;
      const Tensor given = one.latent.slice(0, from, from + 1),
                   to = made.slice(0, row, row + 1).slice(kOfReference, at, end);
      if (one.is_scaled)
        ops::copy_into(ctx, given, to);
      else
        to_model_units(ctx, given, format, to);
    }
    at = end;
  }
  return made;
}

std::optional<Shape> half_pose_shape(const blocks::EntryShapes& entry, const Value& settings,
                                     const ConcatPlace& place) {
  Shape pose = blocks::shape_of(*entry.pose);
  if (!is_video_of(pose, settings.get<std::int64_t>("latent_channels", 0)) ||
      !sees_whole_video(place))
    return {};
  pose[0] = fitted_rows(pose[0], place.items);
  return pose;
}

std::optional<Shape> coloured_masks_shape(const heddle_tensor_info& told, const Value& settings,
                                          const ConcatPlace& place) {
  Shape masks = blocks::shape_of(told);
  if (!are_masks_of(masks, settings) || !sees_whole_video(place)) return {};
  masks[0] = fitted_rows(masks[0], place.items);
  return masks;
}

std::optional<Shape> stacked_references_shape(const blocks::EntryShapes& entry,
                                              const Value& settings, const ConcatPlace& place) {
  if (!sees_whole_video(place)) return {};
  Shape all{1, settings.get<std::int64_t>("latent_channels", 0), 0, place.grid[1], place.grid[2]};
  for (const heddle_tensor_info& info : entry.references) {
    const Shape shape = with_one_frame(blocks::shape_of(info));
    if (!fits_video(shape, settings, place)) return {};
    all[0] = std::max(all[0], fitted_rows(shape[0], place.items));
    all[kOfReference] += shape[kOfReference];
  }
  return all;
}

}  // namespace heddle::samplers
