#include "music_input.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "conditioning.h"
#include "host_latent.h"
#include "sound_video_input.h"

namespace heddle::samplers {
namespace {

constexpr double kFilmRate = 30;  // frames a second
constexpr std::size_t kMusicAxes = 3;

bool is_music(const Shape& music, const Value& settings) {
  return music.size() == kMusicAxes && std::ranges::count(music, 0) == 0 &&
         music[2] == settings.get<std::int64_t>(kMusicNumbers, 0);
}

}  // namespace

bool frames_lie_apart(const Value& entry) {
  return std::int64_t(entry.get<double>(kFrameRate, kFilmRate) + 0.5) != std::int64_t(kFilmRate);
}

Tensor music_of(Context& ctx, const Value& entry, const Value& settings, const ConcatPlace& place) {
  const Tensor music = entry.field(kHeardSound).as<Tensor>();
  if (!is_music(music.shape(), settings))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning's 'audio_embed' is " + shape_text(music.shape()) +
                    ", the model reads a music of " +
                    std::to_string(settings.get<std::int64_t>(kMusicNumbers, 0)) +
                    " numbers for each moment, (batch, moments, numbers). Measure it with "
                    "WanDancerEncodeAudio.");
  if (!place.is_of_all_frames())
    throw Error(HEDDLE_UNSUPPORTED,
                "a conditioning has a music (WanDancerVideo) and an area of a part of the frames. "
                "Leave one of the two out.");
  const Tensor rows = fit_batch(ctx, music, place.items), made = ctx.make(rows.shape(), HEDDLE_F32);
  ops::copy_into(ctx, rows, made);
  return made;
}

Tensor music_strength_of(Context& ctx, const Value& entry) {
  const Tensor made = ctx.make_host({1}, HEDDLE_F32);
  *made.data<float>() = float(entry.get<double>(kMusicScale, 1.0));
  return made;
}

Tensor frame_places_of(Context& ctx, const Value& entry, const ConcatPlace& place) {
  const double rate = entry.get<double>(kFrameRate, kFilmRate);
  if (!(rate > 0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning's 'fps' is " + std::to_string(rate) +
                                             ", of which no video is. Take it from "
                                             "WanDancerEncodeAudio.");
  const std::int64_t frames = place.box ? place.box->size[0] : place.grid[0];
  const double step = kFilmRate / rate;
  const Tensor made = ctx.make_host({frames}, HEDDLE_F32);
  float* const places = made.data<float>();
  for (std::int64_t i = 0; i < frames; ++i) places[i] = float(double(i) * step);
  places[frames - 1] = float(std::int64_t(step * double(frames) + 0.5) - 1);
  return made;
}

std::optional<Shape> music_shape(const blocks::EntryShapes& entry, const Value& settings,
                                 const ConcatPlace& place) {
  Shape music = blocks::shape_of(*entry.heard);
  if (!is_music(music, settings) || !place.is_of_all_frames()) return {};
  music[0] = fitted_rows(music[0], place.items);
  return music;
}

}  // namespace heddle::samplers
