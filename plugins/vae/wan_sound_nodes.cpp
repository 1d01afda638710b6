#include "plugins/vae/wan_sound_nodes.h"

#include <algorithm>
#include <optional>

#include <heddle/ops.hpp>

#include "plugins/vae/heard_moments.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using First = WanSoundImageToVideo;
using Next = WanSoundImageToVideoExtend;

// Frames before a video that are read: of pixels, and of the latent.
constexpr std::int64_t kEarlierPixels = 73, kEarlierCells = latent_frames_of(kEarlierPixels);
constexpr std::size_t kPartAxes = 5;

// What both nodes make of a sound, a picture and a video that is followed, for a part whose first
// frame has `moment` moments before it. fields: of the positive conditioning, other: of the
// negative one, for which it is silent.
struct SoundFields {
  GivenFields fields, other;

  void set(const char* name, const Value& value) {
    fields.set.emplace_back(name, value);
    other.set.emplace_back(name, value);
  }
};
template <class Node>
SoundFields sound_fields(Context& ctx, const WanJob& job, std::int64_t moment) {
  SoundFields made;
  const VideoGrid& grid = job.grid;
  if (ctx.has(Node::heard)) {
    const MomentRange part{moment, grid.frames * kFramesOfCell};
    const Value heard = ctx[Node::heard];
    const Tensor sound = heard_moments(ctx, heard, part, false);
    const Tensor states = heard.field("encoded_audio_all_layers").template as<Tensor>();
    if (is_heard(states.size(2), part)) {
      made.fields.set.emplace_back("audio_embed", value_of(sound));
      made.other.set.emplace_back("audio_embed", value_of(heard_moments(ctx, heard, part, true)));
    }
  }
  if (ctx.has(Node::ref_image)) {
    const Value shown =
        Record()
            .set("samples", value_of(encoded_begin(ctx, ctx[Node::vae], job, ctx[Node::ref_image],
                                                   "ref_image", 1)))
            .value();
    made.fields.appended.emplace_back("reference_latents", shown);
    made.other.appended.emplace_back("reference_latents", shown);
  }
  const Tensor followed = model_zeros(ctx, Autoencoder(ctx[Node::vae]), grid, 1);
  if (ctx.has(Node::control_video)) {
    const Tensor given = encoded_begin(ctx, ctx[Node::vae], job, ctx[Node::control_video],
                                       "control_video", ctx[Node::length]);
    ops::copy_into(ctx, given, followed.slice(2, 0, given.size(2)));
  }
  made.set("control_video", value_of(followed));
  return made;
}

template <class Node>
void give_sound(Context& ctx, const SoundFields& made, const Shape& shape) {
  ctx[Node::positive_out] = with_video_fields(ctx[Node::positive], made.fields);
  ctx[Node::negative_out] = with_video_fields(ctx[Node::negative], made.other);
  ctx[Node::latent] = empty_video(ctx, shape);
}

// The same by shapes.
template <class Node>
ToldFields told_sound(Infer& question, const WanJob& job, std::int64_t moment) {
  ToldFields told;
  const VideoGrid& grid = job.grid;
  const MomentRange part{moment, grid.frames * kFramesOfCell};
  const auto states = question.shape(Node::heard, "encoded_audio_all_layers");
  if (states && !moments_shape(*states, part).empty() && is_heard((*states)[2], part)) {
    const Shape heard = moments_shape(*states, part);
    told.heard = tensor_info(HEDDLE_F32, heard);
    question.host_scratch(sizeof(float) * std::uint64_t(count_of(*states) + 2 * count_of(heard)));
  }
  const Value decoder = *question[Node::vae];
  if (const auto shape = question.shape(Node::ref_image); shape && shape->size() == 4) {
    tell_encoded_begin(question, decoder, *shape, job, 1);
    Shape frame = grid.shape(1);
    frame[2] = 1;
    told.reference = tensor_info(HEDDLE_F32, frame);
  }
  if (const auto shape = question.shape(Node::control_video); shape && shape->size() == 4)
    tell_encoded_begin(question, decoder, *shape, job, *question[Node::length]);
  told.followed = tensor_info(HEDDLE_F32, grid.shape(1));
  return told;
}

Shape latent_shape(const Shape& shape) {
  if (shape.size() != kPartAxes || count_of(shape) == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "video_latent: the latent of a video is (batch, channels, frames, height, width), "
                "this has " +
                    std::to_string(shape.size()) + " axes and " + std::to_string(count_of(shape)) +
                    " numbers. Link what KSampler made of the part before.");
  return shape;
}

// A part as large as the one before it.
WanJob next_job(const Autoencoder& autoencoder, const Shape& before, std::int64_t length) {
  const std::int64_t side = std::max<std::int64_t>(autoencoder.downscale, 1),
                     width = before[4] * side, height = before[3] * side;
  return {video_grid(autoencoder, width, height, length), {height, width}};
}

}  // namespace

void WanSoundImageToVideo::execute(Context& ctx) {
  const WanJob job = wan_job<First>(ctx);
  SoundFields made = sound_fields<First>(ctx, job, 0);
  if (ctx.has(ref_motion)) {
    const Tensor pictures = ctx[ref_motion];
    const std::int64_t given = pictures_shape(pictures.shape(), "ref_motion")[0],
                       taken = std::min(given, kEarlierPixels);
    FrameStrip strip(ctx, ctx[vae], kEarlierPixels, job.pixels);
    strip.put(pictures, "ref_motion", given - taken, taken, kEarlierPixels - taken);
    made.set("reference_motion", value_of(strip.encoded()));
  }
  give_sound<First>(ctx, made, job.grid.shape(ctx[batch_size]));
}

void WanSoundImageToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<First>(question);
  if (!job) return;
  ToldFields told = told_sound<First>(question, *job, 0);
  if (const auto shape = question.shape(ref_motion); shape && shape->size() == 4) {
    tell_pixels(question, *shape, *job, kEarlierPixels);
    infer_encoded_video(question, *question[vae], job->grid, kEarlierPixels);
    Shape before = job->grid.shape(1);
    before[2] = kEarlierCells;
    told.motion = tensor_info(HEDDLE_F32, before);
  }
  tell_wan<First>(question, *job, told);
}

void WanSoundImageToVideoExtend::execute(Context& ctx) {
  const Value given = ctx[video_latent];
  const Autoencoder autoencoder(ctx[vae]);
  const Tensor before = given.get<Tensor>("samples", {});
  const Shape shape = latent_shape(before ? before.shape() : Shape{});
  const WanJob job = next_job(autoencoder, shape, ctx[length]);
  SoundFields made = sound_fields<Next>(ctx, job, shape[2] * kFramesOfCell);
  const Tensor last =
      before.slice(2, std::max<std::int64_t>(shape[2] - kEarlierCells, 0), shape[2]);
  made.set("reference_motion", value_of(raw_of(ctx, last, given, autoencoder)));
  give_sound<Next>(ctx, made, job.grid.shape(shape[0]));
}

void WanSoundImageToVideoExtend::infer(Infer& question) {
  const auto shape = question.shape(video_latent, "samples");
  const auto from = question[vae];
  const auto all = question[length];
  if (!shape || shape->size() != kPartAxes || count_of(*shape) == 0 || !from || !all) return;
  const std::optional<Autoencoder> autoencoder = usable(*from);
  if (!autoencoder) return;
  const WanJob job = next_job(*autoencoder, *shape, *all);
  ToldFields told = told_sound<Next>(question, job, (*shape)[2] * kFramesOfCell);
  Shape before = *shape;
  before[2] = std::min(before[2], kEarlierCells);
  told.motion = tensor_info(HEDDLE_F32, before);
  tell_fields<Next>(question, told);
  question.out(latent, "samples", HEDDLE_F32, job.grid.shape((*shape)[0]));
}

}  // namespace heddle::vae
