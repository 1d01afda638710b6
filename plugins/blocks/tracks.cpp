#include "plugins/blocks/tracks.h"

#include <algorithm>
#include <cmath>

#include <heddle/host_memory.hpp>

namespace heddle::blocks {
namespace {

constexpr const char *kTrackPath = "track_path", *kTrackSeen = "track_visibility";
constexpr std::int64_t kPlaceNumbers = 2;

[[noreturn]] void refuse_tracks(const char* port, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(port) + ": " + what);
}

float place_number(const Value& point, const char* key, const char* port) {
  const Value number = point.field(key);
  if (!number.is(HEDDLE_KIND_INT) && !number.is(HEDDLE_KIND_FLOAT))
    refuse_tracks(port, std::string("a point has no number '") + key +
                            "'. Write points as {\"x\": 10, \"y\": 20}.");
  const double told = number.as<double>();
  if (!std::isfinite(told))
    refuse_tracks(port, std::string("a point's '") + key + "' is no place.");
  return float(told);
}

bool is_point(const Value& value) { return value.is(HEDDLE_KIND_RECORD) && value.has("x"); }
// A list that begins with what is_first() takes.
template <class Is>
bool begins_with(const Value& value, Is&& is_first) {
  return value.is(HEDDLE_KIND_LIST) && value.count() > 0 && is_first(value.item(0));
}
bool is_track(const Value& value) { return begins_with(value, is_point); }
bool is_track_set(const Value& value) { return begins_with(value, is_track); }

TrackPoints points_of(const Value& list, const char* port) {
  if (!list.is(HEDDLE_KIND_LIST) || list.count() == 0)
    refuse_tracks(port, "a track has no points. Give each at least one.");
  TrackPoints points;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    points.push_back(
        {place_number(list.item(i), "x", port), place_number(list.item(i), "y", port)});
  return points;
}
TrackSet set_of(const Value& list, const char* port) {
  if (!list.is(HEDDLE_KIND_LIST) || list.count() == 0)
    refuse_tracks(port, "a set of tracks has none. Give each at least one.");
  TrackSet set;
  for (std::uint32_t i = 0; i < list.count(); ++i) set.push_back(points_of(list.item(i), port));
  return set;
}

}  // namespace

Value value_of_tracks(Context& ctx, const Tracks& tracks) {
  const Tensor path = ctx.make_host({tracks.frames, tracks.count, kPlaceNumbers}, HEDDLE_F32),
               seen = ctx.make_host({tracks.frames, tracks.count}, HEDDLE_F32);
  auto* to = path.data<float>();
  for (const TrackPlace& place : tracks.places) *to++ = place.x, *to++ = place.y;
  std::ranges::copy(tracks.seen, seen.data<float>());
  return Record().set(kTrackPath, value_of(path)).set(kTrackSeen, value_of(seen)).value();
}

void tell_tracks(Infer& question, const Output<Value>& output, std::int64_t frames,
                 std::int64_t count) {
  question.out(output, kTrackPath, HEDDLE_F32, {frames, count, kPlaceNumbers});
  question.out(output, kTrackSeen, HEDDLE_F32, {frames, count});
}

Tracks tracks_of(Context& ctx, const Value& value, const char* port) {
  const Tensor path = value.get<Tensor>(kTrackPath, {}), seen = value.get<Tensor>(kTrackSeen, {});
  if (!path || path.dtype() != HEDDLE_F32 || path.rank() != 3 || path.size(2) != kPlaceNumbers ||
      path.count() == 0)
    refuse_tracks(port,
                  "it holds no 'track_path' (frames, tracks, 2) of 32-bit numbers. Link "
                  "GenerateTracks or WanMoveTracksFromCoords.");
  Tracks tracks{path.size(0), path.size(1), {}, {}};
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(path.count()), &memory);
  read_to<float>(ctx, path, numbers);
  for (std::size_t i = 0; i < numbers.size(); i += kPlaceNumbers)
    tracks.places.push_back({numbers[i], numbers[i + 1]});
  tracks.seen.assign(tracks.places.size(), true);
  if (!seen) return tracks;
  // Of all tracks at once, or of each.
  if (seen.dtype() != HEDDLE_F32 || seen.rank() != 2 || seen.size(0) < tracks.frames ||
      (seen.size(1) != 1 && seen.size(1) != tracks.count))
    refuse_tracks(port, "its 'track_visibility' is not (" + std::to_string(tracks.frames) + ", " +
                            std::to_string(tracks.count) + ") numbers, as 'track_path' is.");
  std::pmr::vector<float> shown(std::size_t(seen.count()), &memory);
  read_to<float>(ctx, seen, shown);
  const std::int64_t columns = seen.size(1);
  for (std::int64_t t = 0; t < tracks.frames; ++t)
    for (std::int64_t n = 0; n < tracks.count; ++n)
      tracks.seen[tracks.index(t, n)] =
          shown[std::size_t(t * columns + std::min(n, columns - 1))] != 0;
  return tracks;
}

std::vector<bool> frames_seen(Context& ctx, const Tensor& masks, std::int64_t frames) {
  const std::int64_t count = masks.rank() == 3 ? masks.size(0) : 1,
                     pixels = count == 0 ? 0 : masks.count() / count;
  if ((count < frames && count != 1) || pixels == 0)
    refuse_tracks("track_mask", "there are " + std::to_string(pixels == 0 ? 0 : count) +
                                    " masks and " + std::to_string(frames) +
                                    " frames. Link one, or one for each frame; what is 0 in "
                                    "all of it hides the tracks there.");
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(masks.count()), &memory);
  read_to<float>(ctx, masks, numbers);
  std::vector<bool> seen;
  for (std::int64_t t = 0; t < frames; ++t) {
    const auto first = numbers.begin() + (count == 1 ? 0 : t) * pixels;
    seen.push_back(std::any_of(first, first + pixels, [](float number) { return number > 0; }));
  }
  return seen;
}

ParsedTracks parsed_tracks(const std::string& text, const char* port) {
  std::string json = text;
  std::ranges::replace(json, '\'', '"');
  heddle_value* parsed = nullptr;
  heddle_status* const failed = service<heddle_json_service>().parse(
      services.host, {json.data(), json.size()}, port, &parsed);
  if (failed != nullptr) {
    if (services.host->status_code(failed) != HEDDLE_INVALID_ARGUMENT) throw Failed{failed};
    ParsedTracks none{{}, services.host->status_message(failed)};
    services.host->status_free(failed);
    return none;
  }
  const Value all = Value::adopt(parsed);
  if (!all.is(HEDDLE_KIND_LIST))
    refuse_tracks(port,
                  "a list of tracks is wanted, each a list of points {\"x\": 10, \"y\": 20}.");
  if (all.count() == 0) return {};
  if (is_track(all)) return {{{points_of(all, port)}}};
  if (is_track_set(all)) return {{set_of(all, port)}};
  ParsedTracks made;
  for (std::uint32_t i = 0; i < all.count(); ++i) made.sets.push_back(set_of(all.item(i), port));
  return made;
}

}  // namespace heddle::blocks
