#include "plugins/image/track_nodes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <heddle/host_memory.hpp>

#include "plugins/blocks/tracks.h"
#include "plugins/image/draw_tracks.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

using blocks::Tracks;

// In 32 bits, and in PyTorch's order, so that a point falls into the same cell.
// PyTorch's linspace from 0 to 1.
float track_time(std::int64_t i, std::int64_t count) {
  if (count == 1) return 0;
  const float step = 1.0f / float(count - 1);
  return i < count / 2 ? step * float(i) : 1.0f - step * float(count - 1 - i);
}
// Part of the way by then.
float paced(float time, const std::string& pace) {
  if (pace == "constant") return 0;
  if (pace == "ease_in") return time * time;
  if (pace == "ease_out") return 1.0f - (1.0f - time) * (1.0f - time);
  if (pace == "ease_in_out") return time * time * (3.0f - 2.0f * time);
  return time;
}

// Along one axis, in pixels.
struct AxisOfWay {
  double start, middle, end;

  float at(float part, bool is_curve) const {
    if (!is_curve) return float(start) + float(end - start) * part;
    const float rest = 1.0f - part;
    return rest * rest * float(start) + 2.0f * rest * part * float(middle) +
           part * part * float(end);
  }
  double direction(float part, bool is_curve) const {
    if (!is_curve) return double(float(end - start));
    return double(2.0f * (1.0f - part) * float(middle - start) + 2.0f * part * float(end - middle));
  }
};

template <class Node>
void give_tracks(Context& ctx, Tracks tracks) {
  if (ctx.has(Node::track_mask)) {
    const std::vector<bool> seen = blocks::frames_seen(ctx, ctx[Node::track_mask], tracks.frames);
    for (std::int64_t t = 0; t < tracks.frames; ++t)
      for (std::int64_t n = 0; n < tracks.count; ++n)
        tracks.seen[tracks.index(t, n)] = seen[std::size_t(t)];
  }
  ctx[Node::tracks] = blocks::value_of_tracks(ctx, tracks);
  ctx[Node::track_length] = tracks.frames;
}

// Points of as many frames as the first track has.
Tracks tracks_of_points(const blocks::TrackSet& set) {
  Tracks tracks{std::int64_t(set.front().size()), std::int64_t(set.size()), {}, {}};
  for (std::size_t n = 0; n < set.size(); ++n)
    if (set[n].size() < set.front().size())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "track_coords: track " + std::to_string(n) + " has " +
                      std::to_string(set[n].size()) + " points, the first one has " +
                      std::to_string(tracks.frames) + ". Give each a point for every frame.");
  for (std::size_t t = 0; t < set.front().size(); ++t)
    for (const blocks::TrackPoints& points : set) tracks.places.push_back(points[t]);
  tracks.seen.assign(tracks.places.size(), true);
  return tracks;
}
const blocks::TrackSet& only_set(const blocks::ParsedTracks& parsed) {
  if (parsed.sets.size() == 1) return parsed.sets.front();
  throw Error(HEDDLE_INVALID_ARGUMENT,
              parsed.sets.empty()
                  ? "track_coords: there are no tracks" +
                        (parsed.trouble.empty() ? "." : ": " + parsed.trouble) +
                        " Write [[{\"x\": 10, \"y\": 20}, ...], ...]."
                  : "track_coords: there are " + std::to_string(parsed.sets.size()) +
                        " sets of tracks. Give one: a list of lists of points.");
}

Tracks joined_tracks(const Tracks& one, const Tracks& two) {
  if (one.frames != two.frames)
    throw Error(HEDDLE_INVALID_ARGUMENT, "tracks_1 has " + std::to_string(one.frames) +
                                             " frames, tracks_2 " + std::to_string(two.frames) +
                                             ". Make both of the same number.");
  Tracks all{one.frames, one.count + two.count, {}, {}};
  for (std::int64_t t = 0; t < all.frames; ++t)
    for (const Tracks* part : {&one, &two})
      for (std::int64_t n = 0; n < part->count; ++n) {
        all.places.push_back(part->places[part->index(t, n)]);
        all.seen.push_back(part->seen[part->index(t, n)]);
      }
  return all;
}

// How many pictures tracks of so many frames are drawn on.
std::int64_t drawn_pictures(std::int64_t pictures, std::int64_t frames) {
  if (pictures > frames)
    throw Error(HEDDLE_INVALID_ARGUMENT, "images: there are " + std::to_string(pictures) +
                                             ", and the tracks have " + std::to_string(frames) +
                                             " frames. Link no more pictures than frames.");
  return frames / pictures * pictures;
}

constexpr const char* kPathOfTracks = "track_path";

}  // namespace

void WanMoveTracksFromCoords::execute(Context& ctx) {
  give_tracks<WanMoveTracksFromCoords>(
      ctx, tracks_of_points(only_set(blocks::parsed_tracks(ctx[track_coords], "track_coords"))));
}

void WanMoveTracksFromCoords::infer(Infer& question) {
  const auto text = question[track_coords];
  if (!text) return;
  const blocks::ParsedTracks parsed = blocks::parsed_tracks(*text, "track_coords");
  const blocks::TrackSet& set = only_set(parsed);
  const auto frames = std::int64_t(set.front().size());
  blocks::tell_tracks(question, tracks, frames, std::int64_t(set.size()));
  question.known(track_length, "", value_of(frames));
}

void GenerateTracks::execute(Context& ctx) {
  const auto across = double(ctx[width]), down = double(ctx[height]),
             step = ctx[track_spread] * (across + down) / 2;
  const AxisOfWay x{ctx[start_x] * across, ctx[mid_x] * across, ctx[end_x] * across},
      y{ctx[start_y] * down, ctx[mid_y] * down, ctx[end_y] * down};
  const bool is_curve = ctx[bezier];
  const std::string pace = ctx[interpolation];
  Tracks made{ctx[num_frames], ctx[num_tracks], {}, {}};
  for (std::int64_t t = 0; t < made.frames; ++t) {
    const float part = paced(track_time(t, made.frames), pace);
    const double along_x = x.direction(part, is_curve), along_y = y.direction(part, is_curve),
                 length = std::sqrt(along_x * along_x + along_y * along_y);
    // Side by side across the way; where it stands still, along x.
    const double aside_x = length > 0 ? -along_y / length : 1,
                 aside_y = length > 0 ? along_x / length : 0;
    for (std::int64_t n = 0; n < made.count; ++n) {
      const double aside = (double(n) - double(made.count - 1) / 2) * step;
      made.places.push_back({float(double(x.at(part, is_curve)) + aside_x * aside),
                             float(double(y.at(part, is_curve)) + aside_y * aside)});
    }
  }
  made.seen.assign(made.places.size(), true);
  give_tracks<GenerateTracks>(ctx, std::move(made));
}

void GenerateTracks::infer(Infer& question) {
  const auto frames = question[num_frames], count = question[num_tracks];
  if (!frames || !count) return;
  blocks::tell_tracks(question, tracks, *frames, *count);
  question.known(track_length, "", value_of(*frames));
}

void WanMoveConcatTrack::execute(Context& ctx) {
  if (!ctx.has(tracks_2)) {
    ctx[tracks] = ctx[tracks_1];
    return;
  }
  ctx[tracks] = blocks::value_of_tracks(
      ctx, joined_tracks(blocks::tracks_of(ctx, ctx[tracks_1], "tracks_1"),
                         blocks::tracks_of(ctx, ctx[tracks_2], "tracks_2")));
}

void WanMoveConcatTrack::infer(Infer& question) {
  const auto one = question.shape(tracks_1, kPathOfTracks),
             two = question.shape(tracks_2, kPathOfTracks);
  if (one && two && one->size() == 3 && two->size() == 3)
    blocks::tell_tracks(question, tracks, (*one)[0], (*one)[1] + (*two)[1]);
}

void WanMoveVisualizeTracks::execute(Context& ctx) {
  const Tensor given = ctx[images];
  if (!ctx.has(tracks)) {
    ctx[out] = given;
    return;
  }
  const Tracks drawn = blocks::tracks_of(ctx, ctx[tracks], "tracks");
  const Pixels pictures = Pixels::image(ctx, given, "images");
  Extent extent = pictures.extent();
  if (extent.channels != 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "images: they have " + std::to_string(extent.channels) +
                                             " channels. Link pictures of three.");
  extent.count = drawn_pictures(extent.count, drawn.frames);
  const Canvas to = Canvas::image(ctx, extent);
  const TrackStyle style{ctx[line_resolution], ctx[circle_size], ctx[line_width], ctx[opacity]};
  HostMemory memory(ctx);
  for (std::int64_t t = 0; t < extent.count; ++t) {
    check_cancelled(ctx);
    draw_tracks(drawn, t, style, pictures.row(t, 0), to, t, memory);
    ctx.progress(double(t + 1) / double(extent.count), "pictures");
  }
  ctx[out] = to.tensor();
}

void WanMoveVisualizeTracks::infer(Infer& question) {
  const auto extent = extent_of_image(question, images);
  const auto path = question.shape(tracks, kPathOfTracks);
  if (!extent || !path || path->size() != 3 || extent->count == 0) return;
  Extent drawn = *extent;
  drawn.count = drawn_pictures(extent->count, (*path)[0]);
  question.out(out, "", HEDDLE_F32, image_shape(drawn));
  const auto pixels = std::uint64_t(drawn.height * drawn.width);
  question.host_scratch(pixels * (3 * sizeof(double) + 2 * (3 + 1)));
}

}  // namespace heddle::image
