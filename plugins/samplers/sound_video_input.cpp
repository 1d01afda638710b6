#include "sound_video_input.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "conditioning.h"
#include "host_latent.h"
#include "vace_input.h"

namespace heddle::samplers {
namespace {

constexpr std::size_t kLatentAxes = 5, kSoundAxes = 4, kLatentRows = 3, kLatentColumns = 4;
constexpr const char* kHeardWindow = "heard_window";
constexpr std::int64_t kMomentsOfFrame = 4;

// Of a latent: frames as large as those of the point, and where it is followed as many.
bool is_like_point(const Shape& latent, std::int64_t channels, const ConcatPlace& place,
                   bool is_followed) {
  return place.grid.size() == 3 && latent.size() == kLatentAxes && latent[1] == channels &&
         latent[kLatentRows] == place.grid[1] && latent[kLatentColumns] == place.grid[2] &&
         (!is_followed || latent[kFramesAxis] == place.grid[0]) &&
         std::ranges::count(latent, 0) == 0;
}

bool is_like_model(const Shape& heard, const Value& settings, const ConcatPlace& place) {
  if (settings.has(kHeardWindow))
    return place.grid.size() == 3 && !heard.empty() && heard[0] > 0 &&
           heard == Shape{heard[0], place.grid[0], settings.get<std::int64_t>(kHeardWindow, 0),
                          settings.get<std::int64_t>(kHeardStates, 0),
                          settings.get<std::int64_t>(kHeardWidth, 0)};
  return place.grid.size() == 3 && heard.size() == kSoundAxes &&
         heard[1] == settings.get<std::int64_t>(kHeardStates, 0) &&
         heard[2] == settings.get<std::int64_t>(kHeardWidth, 0) && heard[0] > 0 &&
         heard[3] >= place.grid[0] * kMomentsOfFrame;
}

// heard is not what a model of these settings hears.
[[noreturn]] void refuse_heard(const Shape& heard, const Value& settings,
                               const ConcatPlace& place) {
  const auto number = [&](const char* name) {
    return std::to_string(settings.get<std::int64_t>(name, 0));
  };
  const std::string states =
                        number(kHeardStates) + " states of " + number(kHeardWidth) + " numbers",
                    grid = shape_text(place.grid);
  const bool is_of_frames = settings.has(kHeardWindow);
  throw Error(
      HEDDLE_INVALID_ARGUMENT,
      "the conditioning's 'audio_embed' is " + shape_text(heard) + ", the model reads " +
          (is_of_frames ? number(kHeardWindow) + " moments of " + states +
                              " for each frame of the latent of " + grid +
                              ". Hear the sound with whisper_large_v3, and take the latent of the "
                              "same WanHuMoImageToVideo."
                        : states + " and four moments for each frame of the latent of " + grid +
                              ". Hear the sound with wav2vec2_large_english, and take the latent "
                              "of the same WanSoundImageToVideo."));
}

void refuse_part_of_frames(const ConcatPlace& place) {
  if (place.is_of_all_frames()) return;
  throw Error(
      HEDDLE_UNSUPPORTED,
      "a conditioning has a sound or a video that goes with it (WanSoundImageToVideo, "
      "WanHuMoImageToVideo) and an area of a part of the frames. Leave one of the two out.");
}

Tensor latent_beside(Context& ctx, const Value& entry, const char* field,
                     const LatentFormat& format, const ConcatPlace& place) {
  const bool is_followed = std::string_view(field) == kFollowedLatent;
  const Tensor latent = entry.field(field).as<Tensor>();
  if (!is_like_point(latent.shape(), format.channels, place, is_followed))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the conditioning's '") + field + "' is " + shape_text(latent.shape()) +
                    ", the model reads " + std::to_string(format.channels) +
                    " channels of frames as the latent that is drawn has, of " +
                    shape_text(place.grid) + ". Take both from one WanSoundImageToVideo.");
  refuse_part_of_frames(place);
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

std::optional<Shape> shape_beside(const heddle_tensor_info& told, const Value& settings,
                                  const ConcatPlace& place, bool is_followed) {
  Shape latent = blocks::shape_of(told);
  if (!is_like_point(latent, settings.get<std::int64_t>("latent_channels", 0), place,
                     is_followed) ||
      !place.is_of_all_frames())
    return {};
  latent[0] = fitted_rows(latent[0], place.items);
  if (place.box) std::copy_n(place.box->size.begin() + 1, 2, latent.begin() + kLatentRows);
  return latent;
}

}  // namespace

Tensor heard_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place) {
  const Tensor heard = entry.field(kHeardSound).as<Tensor>();
  if (!is_like_model(heard.shape(), settings, place)) refuse_heard(heard.shape(), settings, place);
  refuse_part_of_frames(place);
  const Tensor rows = fit_batch(ctx, heard, place.items);
  const Tensor made = ctx.make(rows.shape(), HEDDLE_F32);
  ops::copy_into(ctx, rows, made);
  return made;
}

Tensor earlier_frames_of(Context& ctx, const Value& entry, const LatentFormat& format,
                         const ConcatPlace& place) {
  return latent_beside(ctx, entry, kEarlierLatent, format, place);
}

Tensor followed_of(Context& ctx, const Value& entry, const LatentFormat& format,
                   const ConcatPlace& place) {
  return latent_beside(ctx, entry, kFollowedLatent, format, place);
}

std::optional<Shape> heard_shape(const blocks::EntryShapes& entry, const Value& settings,
                                 const ConcatPlace& place) {
  Shape heard = blocks::shape_of(*entry.heard);
  if (!is_like_model(heard, settings, place) || !place.is_of_all_frames()) return {};
  heard[0] = fitted_rows(heard[0], place.items);
  return heard;
}

std::optional<Shape> earlier_frames_shape(const blocks::EntryShapes& entry, const Value& settings,
                                          const ConcatPlace& place) {
  return shape_beside(*entry.motion, settings, place, false);
}

std::optional<Shape> followed_shape(const blocks::EntryShapes& entry, const Value& settings,
                                    const ConcatPlace& place) {
  return shape_beside(*entry.followed, settings, place, true);
}

}  // namespace heddle::samplers
