#include "plugins/blocks/object_tracks.h"

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

namespace heddle::blocks {
namespace {

[[noreturn]] void refuse_object_tracks(const char* port) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              std::string(port) + ": this is no SAM3_TRACK_DATA. Link what SAM3_VideoTrack makes.");
}

// A score that is no number counts as the highest, and leaves those behind it in their places.
double score_of(const Value& value) {
  if (value.is(HEDDLE_KIND_INT)) return double(value.as<std::int64_t>());
  return value.is(HEDDLE_KIND_FLOAT) ? value.as<double>() : 1.0;
}

}  // namespace

Value value_of_object_tracks(const ObjectTracks& tracks) {
  std::vector<Value> scores;
  for (const double score : tracks.scores) scores.push_back(value_of(score));
  Record record;
  if (tracks.bits) record.set("packed_masks", value_of(tracks.bits));
  return record.set("n_frames", value_of(tracks.frames))
      .set("scores", list_of(scores))
      .set("orig_size",
           list_of(std::vector<Value>{value_of(tracks.height), value_of(tracks.width)}))
      .value();
}

ObjectTracks object_tracks_of(Context& ctx, const Value& value, const char* port) {
  constexpr std::int64_t kMost = 1 << 20;
  const Value size = value.field("orig_size"), frames = value.field("n_frames"),
              bits = value.field("packed_masks"), scores = value.field("scores");
  if (!value.is(HEDDLE_KIND_RECORD) || !size.is(HEDDLE_KIND_LIST) || size.count() != 2 ||
      !size.item(0).is(HEDDLE_KIND_INT) || !size.item(1).is(HEDDLE_KIND_INT) ||
      !frames.is(HEDDLE_KIND_INT))
    refuse_object_tracks(port);
  ObjectTracks tracks{frames.as<std::int64_t>(), size.item(0).as<std::int64_t>(),
                      size.item(1).as<std::int64_t>()};
  for (const std::int64_t side : {tracks.height, tracks.width})
    if (side < 1 || side > kMost) refuse_object_tracks(port);
  if (tracks.frames < 0) refuse_object_tracks(port);
  if (bits.is(HEDDLE_KIND_TENSOR)) {
    const auto packed = bits.as<Tensor>();
    if (packed.rank() != 4 || packed.dtype() != HEDDLE_U8 || packed.size(0) != tracks.frames)
      refuse_object_tracks(port);
    for (const std::int64_t count : packed.shape())
      if (count < 1) refuse_object_tracks(port);
    tracks.bits = ctx.make_host(packed.shape(), HEDDLE_U8);
    const auto count = std::size_t(
        checked_product({packed.size(0), packed.size(1), packed.size(2), packed.size(3)}, "masks"));
    read_to<std::uint8_t>(ctx, packed,
                          std::span<std::uint8_t>(tracks.bits.data<std::uint8_t>(), count));
  }
  for (std::uint32_t i = 0; i < scores.count(); ++i)
    tracks.scores.push_back(score_of(scores.item(i)));
  return tracks;
}

}  // namespace heddle::blocks
