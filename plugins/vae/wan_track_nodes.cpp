#include "plugins/vae/wan_track_nodes.h"

#include <algorithm>
#include <memory_resource>
#include <optional>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/tracks.h"
#include "plugins/blocks/wan_latents.h"
#include "plugins/vae/motion_tracks.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Mixed = WanTrackToVideo;
using Moved = WanMoveTrackToVideo;

// A video's first frames, and grey behind them, in the autoencoder's units.
Tensor begun_video(Context& ctx, const Value& autoencoder, const WanJob& job,
                   const Tensor& pictures, std::int64_t first, std::int64_t count) {
  FrameStrip strip(ctx, autoencoder, job.grid.pixel_frames(), job.pixels);
  strip.put(pictures, "start_image", first, count, 0);
  return strip.encoded();
}
// As WanImageToVideo: how many pictures begin it, and which frames of the latent hold them.
struct Begun {
  std::int64_t count, cells;
};
Begun begun_by(const Tensor& pictures, std::int64_t length) {
  const std::int64_t count = std::min(pictures_shape(pictures.shape(), "start_image")[0], length);
  return {count, latent_frames_of(count)};
}
void set_begun(Context& ctx, const WanJob& job, const Begun& begun, const Tensor& video,
               GivenFields& fields) {
  fields.set.emplace_back("concat_latent_image", value_of(video));
  fields.set.emplace_back(
      "concat_mask", mask_of_frames(ctx, job.grid, 1,
                                    [&](std::int64_t t, std::int64_t) { return t < begun.cells; }));
}

// (1, C, F, h, w) f32 in host memory: the run may be on another device.
void copy_to_host(Context& ctx, const Tensor& from, float* to) {
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(from.count()), &memory);
  read_to<float>(ctx, from, numbers);
  std::ranges::copy(numbers, to);
}

// To the model's units, and back.
class ModelUnits {
 public:
  ModelUnits(const Autoencoder& autoencoder, std::int64_t channels)
      : autoencoder_(autoencoder), known_(blocks::published_statistics(channels)) {}
  float in(float raw, std::int64_t channel) const {
    if (known_.means.empty()) return float((double(raw) - autoencoder_.shift) * autoencoder_.scale);
    const auto c = std::size_t(channel);
    return float((double(raw) - known_.means[c]) / known_.deviations[c]);
  }
  float out(float scaled, std::int64_t channel) const {
    if (known_.means.empty())
      return float(double(scaled) / autoencoder_.scale + autoencoder_.shift);
    const auto c = std::size_t(channel);
    return float(double(scaled) * known_.deviations[c] + known_.means[c]);
  }

 private:
  const Autoencoder& autoencoder_;
  const blocks::LatentStatistics known_;
};

// The row that an item of a batch takes, as ComfyUI spreads them over another number of items.
std::int64_t row_of_item(std::int64_t item, std::int64_t items, std::int64_t rows) {
  if (items >= rows)
    return std::min(std::int64_t((double(item) + 0.5) * double(rows) / double(items)), rows - 1);
  return items <= 1
             ? 0
             : std::int64_t(std::nearbyint(double(item) * double(rows - 1) / double(items - 1)));
}

// The items that differ: one where the batch has one picture and one set of tracks.
std::int64_t mixed_items(std::int64_t batch, std::int64_t pictures, std::int64_t sets) {
  return pictures == 1 && sets == 1 ? 1 : batch;
}

// What ATI reads: of each item the video and the mask of its four frames of pixels.
GivenFields mixed_fields(Context& ctx, const WanJob& job,
                         const std::vector<blocks::TrackSet>& sets) {
  const VideoGrid& grid = job.grid;
  const Tensor pictures = ctx[Mixed::start_image];
  const std::int64_t batch = ctx[Mixed::batch_size],
                     given = std::min(pictures_shape(pictures.shape(), "start_image")[0], batch),
                     items = mixed_items(batch, given, std::int64_t(sets.size())),
                     plane = grid.frames * grid.height * grid.width;
  const Value decoder = ctx[Mixed::vae];
  const Autoencoder autoencoder(decoder);
  const ModelUnits units(autoencoder, grid.channels);
  const Tensor video = ctx.make_host(grid.shape(items), HEDDLE_F32),
               mask = ctx.make_host({items, kFramesOfCell, grid.frames, grid.height, grid.width},
                                    HEDDLE_F32);
  HostMemory memory(ctx);
  std::pmr::vector<float> shares(std::size_t(plane), &memory);
  Tensor shown;
  std::int64_t shown_picture = -1;
  for (std::int64_t item = 0; item < items; ++item) {
    const std::int64_t picture = row_of_item(item, batch, given),
                       set = row_of_item(item, batch, std::int64_t(sets.size()));
    if (picture != shown_picture) shown = begun_video(ctx, decoder, job, pictures, picture, 1);
    shown_picture = picture;
    float* const to = video.data<float>() + item * grid.channels * plane;
    copy_to_host(ctx, shown, to);
    for (std::int64_t i = 0; i < grid.channels * plane; ++i) to[i] = units.in(to[i], i / plane);
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    mix_tracks(job, sets[std::size_t(set)], {ctx[Mixed::temperature], ctx[Mixed::topk]}, to,
               shares.data(), memory);
    for (std::int64_t i = 0; i < grid.channels * plane; ++i) to[i] = units.out(to[i], i / plane);
    for (std::int64_t c = 0; c < kFramesOfCell; ++c)
      std::transform(shares.begin(), shares.end(),
                     mask.data<float>() + (item * kFramesOfCell + c) * plane,
                     [](float share) { return 1 - share; });
  }
  return {{{"concat_latent_image", value_of(video)}, {"concat_mask", value_of(mask)}}};
}

// The calls and fields of a video that begins with pictures.
template <class Node>
std::optional<ToldFields> told_begun(Infer& question, const WanJob& job) {
  ToldFields told;
  const auto shape = question.shape(Node::start_image);
  if (!shape || shape->size() != 4) return {};
  told.image = told.mask = job.grid.shape(1);
  (*told.mask)[1] = 1;
  tell_pixels(question, *shape, job, job.grid.pixel_frames());
  infer_encoded_video(question, *question[Node::vae], job.grid, job.grid.pixel_frames());
  told.seen = told_seen<Node>(question);
  return told;
}

}  // namespace

void WanTrackToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<Mixed>(ctx);
  const blocks::ParsedTracks parsed = blocks::parsed_tracks(ctx[tracks], "tracks");
  if (!parsed.trouble.empty()) ctx.warn("there are no tracks: " + parsed.trouble);
  GivenFields fields;
  if (parsed.sets.empty()) {
    const Tensor pictures = ctx[start_image];
    const Begun begun = begun_by(pictures, ctx[length]);
    set_begun(ctx, job, begun, begun_video(ctx, ctx[vae], job, pictures, 0, begun.count), fields);
  } else {
    fields = mixed_fields(ctx, job, parsed.sets);
  }
  set_seen<Mixed>(ctx, fields);
  give_wan<Mixed>(ctx, job, fields);
}

void WanTrackToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Mixed>(question);
  if (!job) return;
  std::optional<ToldFields> told = told_begun<Mixed>(question, *job);
  const auto given = question[tracks];
  const auto batch = question[batch_size];
  if (!told || !given || !batch) return;
  const auto sets = std::int64_t(blocks::parsed_tracks(*given, "tracks").sets.size());
  if (sets > 0) {
    const std::int64_t pictures = std::min((*question.shape(start_image))[0], *batch),
                       items = mixed_items(*batch, pictures, sets);
    told->image = told->mask = job->grid.shape(items);
    (*told->mask)[1] = kFramesOfCell;
    for (std::int64_t item = 1, last = 0; item < items; ++item) {
      const std::int64_t picture = row_of_item(item, *batch, pictures);
      if (picture != last)
        infer_encoded_video(question, *question[vae], job->grid, job->grid.pixel_frames());
      last = picture;
    }
    question.host_scratch(sizeof(float) * std::uint64_t(2 * count_of(*told->image)));
  }
  tell_wan<Mixed>(question, *job, *told);
}

void WanMoveTrackToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<Moved>(ctx);
  const Tensor pictures = ctx[start_image];
  const Begun begun = begun_by(pictures, ctx[length]);
  Tensor video = begun_video(ctx, ctx[vae], job, pictures, 0, begun.count);
  const double share = ctx[strength];
  if (ctx.has(tracks) && share > 0) {
    const blocks::Tracks given = blocks::tracks_of(ctx, ctx[tracks], "tracks");
    const Tensor moved = ctx.make_host(video.shape(), HEDDLE_F32);
    copy_to_host(ctx, video, moved.data<float>());
    move_along(job, given, float(share), moved.data<float>());
    video = moved;
  }
  GivenFields fields;
  set_begun(ctx, job, begun, video, fields);
  set_seen<Moved>(ctx, fields);
  give_wan<Moved>(ctx, job, fields);
}

void WanMoveTrackToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Moved>(question);
  if (!job) return;
  const std::optional<ToldFields> told = told_begun<Moved>(question, *job);
  if (!told) return;
  question.host_scratch(sizeof(float) * std::uint64_t(count_of(*told->image)));
  tell_wan<Moved>(question, *job, *told);
}

}  // namespace heddle::vae
