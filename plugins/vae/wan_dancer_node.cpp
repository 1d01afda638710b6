#include "plugins/vae/wan_dancer_node.h"

#include <algorithm>
#include <optional>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/vae/film_parts.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Dance = WanDancerVideo;

constexpr const char *kMusicField = "audio_embed", *kKeptField = "clip_vision_output_ref",
                     *kMeasuredField = "audio_feature";
// Numbers that go from what is heard into the conditionings.
constexpr const char* kToldNumbers[] = {"fps", "audio_inject_scale"};

// Frames of the latent that a mask of so many frames tells of; none: of no whole ones.
std::optional<std::int64_t> masked_frames(std::int64_t frames) {
  if (frames < 1 || (frames - 1) % kFramesOfCell != 0) return {};
  return latent_frames_of(frames);
}

// (1, 4, T, h, w), 0 where the mask keeps a frame: of each cell its nearest pixel.
Value mask_of_keyframes(Context& ctx, const Tensor& mask, std::int64_t length,
                        const VideoGrid& grid) {
  const Shape shape = mask.shape();
  const std::int64_t frames = shape.size() == 3 ? std::min(shape[0], length) : 0;
  const std::optional<std::int64_t> cells = masked_frames(frames);
  if (!cells || count_of(shape) == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "mask: it has " + std::to_string(shape.size()) + " axes and " +
                    std::to_string(frames) +
                    " frames of the video; the mask of a video is (4 n + 1, height, width). Take "
                    "it from WanDancerPadKeyframes with a segment_length of 4 n + 1, such as 149.");
  HostMemory memory(ctx);
  const HostFloats given(ctx, mask);
  const std::int64_t plane = grid.height * grid.width;
  std::pmr::vector<float> near(std::size_t(checked_product({frames, plane}, "the mask")), &memory);
  blocks::resample(blocks::Source::of(given.data(), {frames, {shape[1], shape[2]}, 1}),
                   {grid.height, grid.width}, blocks::Resampling::nearest_exact, near.data(),
                   memory);
  const Tensor made =
      ctx.make_host({1, kFramesOfCell, *cells, grid.height, grid.width}, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::int64_t c = 0; c < kFramesOfCell; ++c)
    for (std::int64_t t = 0; t < *cells; ++t) {
      // The latent's first frame holds one of pixels, four times.
      const std::int64_t frame = std::max<std::int64_t>(0, (t - 1) * kFramesOfCell + 1 + c);
      const float* const from = near.data() + (t == 0 ? 0 : frame) * plane;
      to = std::transform(from, from + plane, to, [](float kept) { return 1 - kept; });
    }
  return value_of(made);
}

void add_music(Context& ctx, GivenFields& fields) {
  if (!ctx.has(Dance::heard)) return;
  const Value heard = ctx[Dance::heard];
  if (!heard.has(kMeasuredField))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio_encoder_output: it holds no measured music, but what an encoder of sound "
                "heard. Link WanDancerEncodeAudio.");
  fields.set.emplace_back(kMusicField, heard.field(kMeasuredField));
  for (const char* number : kToldNumbers)
    if (heard.has(number)) fields.set.emplace_back(number, heard.field(number));
}

Tensor sound_of_film(const Value& audio, std::int64_t& rate) {
  const Tensor waveform = audio.get<Tensor>("waveform", {});
  rate = audio.get<std::int64_t>("sample_rate", 0);
  if (waveform && waveform.rank() == 3 && rate > 0) return waveform;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "audio: this is no sound of (batch, channels, points) with a sample_rate. Link an "
              "AUDIO, such as that of LoadAudio.");
}

struct FilmPart {
  Tensor frames, mask;
  Value sound;
};
FilmPart film_part(Context& ctx, const HostFloats& pictures, const Shape& shape, const Value& audio,
                   std::int64_t length, std::int64_t part) {
  std::int64_t rate = 0;
  const Tensor waveform = sound_of_film(audio, rate);
  const FilmParts film{length, shape[0], waveform.size(2), rate};
  const std::int64_t plane = shape[1] * shape[2], picture = plane * shape[3];
  FilmPart made{ctx.make_host({length, shape[1], shape[2], shape[3]}, HEDDLE_F32),
                ctx.make_host({length, shape[1], shape[2]}, HEDDLE_F32),
                {}};
  std::fill_n(made.frames.data<float>(), made.frames.count(), 0.0f);
  std::fill_n(made.mask.data<float>(), made.mask.count(), 0.0f);
  for (const FilmParts::Keyframe& key : film.keyframes(part)) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    std::copy_n(pictures.data() + key.picture * picture, picture,
                made.frames.data<float>() + key.frame * picture);
    std::fill_n(made.mask.data<float>() + key.frame * plane, plane, 1.0f);
  }
  const FilmParts::Stretch music = film.music(part);
  made.sound = Record()
                   .set("waveform", value_of(waveform.slice(2, music.begin, music.end)))
                   .set("sample_rate", value_of(rate))
                   .value();
  return made;
}

}  // namespace

void WanDancerVideo::execute(Context& ctx) {
  const WanJob job = wan_job<Dance>(ctx);
  GivenFields fields;
  if (ctx.has(start_image)) {
    const Tensor pictures = ctx[start_image];
    const std::int64_t all = ctx[length],
                       count = std::min(pictures_shape(pictures.shape(), "start_image")[0], all);
    const Value kept = ctx.has(mask)
                           ? mask_of_keyframes(ctx, ctx[mask], all, job.grid)
                           : mask_of_frames(ctx, job.grid, 1, [&](std::int64_t t, std::int64_t) {
                               return t < latent_frames_of(count);
                             });
    FrameStrip strip(ctx, ctx[vae], job.grid.pixel_frames(), job.pixels);
    strip.fill(0);
    strip.put(pictures, "start_image", 0, count, 0);
    fields.set.emplace_back("concat_latent_image", value_of(strip.encoded()));
    fields.set.emplace_back("concat_mask", kept);
  }
  set_seen<Dance>(ctx, fields);
  if (ctx.has(clip_vision_output) && ctx.has(clip_vision_output_ref))
    fields.set.emplace_back(kKeptField, ctx[clip_vision_output_ref]);
  add_music(ctx, fields);
  ctx[positive_out] = with_video_fields(ctx[positive], fields);
  ctx[negative_out] = with_video_fields(ctx[negative], fields);
  ctx[latent] = empty_video(ctx, job.grid.shape(1));
}

void WanDancerVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Dance>(question);
  const auto all = question[length];
  if (!job || !all) return;
  ToldFields told;
  if (const auto shape = question.shape(start_image); shape && shape->size() == 4) {
    told.image = told.mask = job->grid.shape(1);
    (*told.mask)[1] = 1;
    std::uint64_t bytes =
        strip_bytes(tensor_info(HEDDLE_F32, *shape), job->pixels, job->grid.pixel_frames());
    if (const auto kept = question.tensor(mask); kept && kept->rank == 3) {
      const std::int64_t frames = std::min(kept->shape[0], *all);
      (*told.mask)[1] = kFramesOfCell;
      (*told.mask)[2] = latent_frames_of(frames);
      const std::int64_t copied =
          kept->dtype == HEDDLE_F32 ? 0 : kept->shape[0] * kept->shape[1] * kept->shape[2];
      bytes = std::max(
          bytes,
          blocks::resampling_bytes({frames, {kept->shape[1], kept->shape[2]}, 1},
                                   {job->grid.height, job->grid.width}) +
              sizeof(float) * std::uint64_t(frames * job->grid.height * job->grid.width + copied));
    }
    question.host_scratch(bytes);
    infer_encoded_video(question, *question[vae], job->grid, job->grid.pixel_frames());
  }
  told.seen = told_seen<Dance>(question);
  if (told.seen)
    told.kept = blocks::seen_shapes(
        [&](const char* field) { return question.tensor(clip_vision_output_ref, field); });
  told.heard = question.tensor(heard, kMeasuredField);
  if (told.heard)
    for (const char* number : kToldNumbers)
      if (const Value known = question.part(heard, number)) told.scope.emplace_back(number, known);
  tell_fields<Dance>(question, told);
  question.out(latent, "samples", HEDDLE_F32, job->grid.shape(1));
}

void WanDancerPadKeyframes::execute(Context& ctx) {
  const Tensor pictures = ctx[images];
  const Shape shape = pictures_shape(pictures.shape(), "images");
  const HostFloats floats(ctx, pictures);
  const FilmPart made =
      film_part(ctx, floats, shape, ctx[audio], ctx[segment_length], ctx[segment_index]);
  ctx[frames] = made.frames;
  ctx[mask] = made.mask;
  ctx[sound] = made.sound;
}

void WanDancerPadKeyframes::infer(Infer& question) {
  const auto pictures = question.tensor(images);
  const auto waveform = question.shape(audio, "waveform");
  const Value rate = question.part(audio, "sample_rate");
  const auto length = question[segment_length], part = question[segment_index];
  if (!length) return;
  if (pictures && pictures->rank == 4) {
    const Shape shape = blocks::shape_of(*pictures);
    question.out(frames, "", HEDDLE_F32, {*length, shape[1], shape[2], shape[3]});
    question.out(mask, "", HEDDLE_F32, {*length, shape[1], shape[2]});
    if (pictures->dtype != HEDDLE_F32)
      question.host_scratch(sizeof(float) * std::uint64_t(count_of(shape)));
  }
  if (!part || !waveform || waveform->size() != 3 || !rate || rate.as<std::int64_t>() < 1) return;
  const FilmParts::Stretch music =
      FilmParts{*length, 1, (*waveform)[2], rate.as<std::int64_t>()}.music(*part);
  question.out(sound, "waveform", HEDDLE_F32,
               {(*waveform)[0], (*waveform)[1], music.end - music.begin});
  question.known(sound, "sample_rate", rate);
}

void WanDancerPadKeyframesList::execute(Context& ctx) {
  const Tensor pictures = ctx[images];
  const Shape shape = pictures_shape(pictures.shape(), "images");
  const HostFloats floats(ctx, pictures);
  std::vector<Value> all_frames, masks, sounds;
  for (std::int64_t part = 0; part < ctx[num_segments]; ++part) {
    const FilmPart made = film_part(ctx, floats, shape, ctx[audio], ctx[segment_length], part);
    all_frames.push_back(value_of(made.frames));
    masks.push_back(value_of(made.mask));
    sounds.push_back(made.sound);
  }
  ctx[frames] = list_of(all_frames);
  ctx[mask] = list_of(masks);
  ctx[sound] = list_of(sounds);
}

}  // namespace heddle::vae
