#include "pair_latent_nodes.h"

#include <algorithm>
#include <cmath>

#include <heddle/host_memory.hpp>

#include "host_latent.h"
#include "pair_latent.h"
#include "plugins/blocks/minimax_latents.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

Tensor tensor_at(const Value& pair, std::uint32_t index) { return parts_of(pair)[index]; }

Value samples_in(const Value& latent, const char* name) {
  if (latent.has("samples")) return latent.field("samples");
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(name) +
                                           ": a LATENT without 'samples' came in. Link the LATENT "
                                           "output of a latent node.");
}

bool has_mask(const Value& latent) {
  const Value mask = latent.field("noise_mask");
  return mask && !mask.is(HEDDLE_KIND_NONE);
}

Tensor filled(Context& ctx, const Shape& shape, float value) {
  const Tensor tensor = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(tensor.data<float>(), tensor.count(), value);
  return tensor;
}

// The tensor as long along one axis as `like` is: the rest is cut off, or `padding` comes behind.
Tensor fitted(Context& ctx, const Tensor& tensor, const Shape& like, float padding) {
  const Shape from = tensor.shape();
  std::size_t axis = 0, differing = 0;
  if (from.size() == like.size())
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != like[i]) {
        axis = i;
        ++differing;
      }
  if (from.size() != like.size() || differing > 1 || (differing == 1 && axis < 2))
    throw Error(HEDDLE_INVALID_ARGUMENT, "audio_latent is " + shape_text(from) + ", that of the " +
                                             "video " + shape_text(like) +
                                             "; only one axis behind the channels may differ.");
  if (differing == 0) return tensor;
  if (from[axis] > like[axis]) return tensor.slice(int(axis), 0, like[axis]);
  const Tensor whole = filled(ctx, like, padding);
  const HostFloats values(ctx, tensor);
  std::int64_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < from.size(); ++i) (i < axis ? outer : inner) *= from[i];
  const std::int64_t step = inner / from[axis] * like[axis];
  for (std::int64_t i = 0; i < outer; ++i)
    std::copy_n(values.data() + i * inner, inner, whole.data<float>() + i * step);
  return whole;
}

// The mask of one part, or ones in the shape of its samples.
Value mask_or_ones(Context& ctx, const Value& mask, const Tensor& samples) {
  return mask && !mask.is(HEDDLE_KIND_NONE) ? mask : value_of(filled(ctx, samples.shape(), 1.0f));
}

// Of so many frames at a rate, by what the autoencoder of sound tells of itself: (batch, channels,
// length, bands). As published where it does not.
Shape sound_shape(const Value& vae, std::int64_t batch, std::int64_t frames, double rate) {
  constexpr double kFactor = 4;  // of the autoencoder, along time and bands
  const Value decoder = vae.field("decoder");
  const Value told = decoder.is(HEDDLE_KIND_MODEL) ? model_settings(decoder) : Record().value();
  const double a_second = double(told.get<std::int64_t>("sample_rate", 16000)) /
                          double(told.get<std::int64_t>("mel_hop_length", 160)) / kFactor;
  return {batch, told.get<std::int64_t>("latent_channels", 8),
          std::max<std::int64_t>(1, std::int64_t(std::ceil(double(frames) / rate * a_second))),
          told.get<std::int64_t>("mel_bins", 64) / std::int64_t(kFactor)};
}

Record overlaid(const Value& below, const Value& above) {
  Record record(below);
  for (std::uint32_t i = 0; i < above.count(); ++i) record.set(above.key(i).c_str(), above.item(i));
  return record;
}

}  // namespace

void LTXVConcatAVLatent::execute(Context& ctx) {
  const Value pictures = ctx[video_latent], sound = ctx[audio_latent];
  const Value seen = samples_in(pictures, "video_latent");
  Tensor audio = samples_in(sound, "audio_latent").as<Tensor>();
  const bool replaces = is_pair(seen);
  const Tensor video = replaces ? tensor_at(seen, 0) : seen.as<Tensor>();
  Value video_mask = pictures.field("noise_mask"), audio_mask = sound.field("noise_mask");
  if (replaces) {
    const Shape before = tensor_at(seen, 1).shape();
    if (has_mask(sound)) {
      Shape like = before;
      const Tensor mask = audio_mask.as<Tensor>();
      // A mask of one number for an axis serves all of it.
      for (std::size_t axis = 0; axis < like.size() && axis < mask.shape().size(); ++axis)
        if (mask.shape()[axis] == 1) like[axis] = 1;
      audio_mask = value_of(fitted(ctx, mask, like, 1.0f));
    }
    audio = fitted(ctx, audio, before, 0.0f);
    if (has_mask(pictures)) video_mask = value_of(tensor_at(video_mask, 0));
  }
  Record both = overlaid(pictures, sound);
  both.set("samples", list_of({value_of(video), value_of(audio)}));
  if (has_mask(pictures) || has_mask(sound))
    both.set("noise_mask",
             list_of({mask_or_ones(ctx, video_mask, video), mask_or_ones(ctx, audio_mask, audio)}));
  ctx[latent] = both.value();
}

void LTXVConcatAVLatent::infer(Infer& question) {
  const auto pictures = question.tensor(video_latent, "samples"),
             sound = question.tensor(audio_latent, "samples");
  if (!pictures || !sound) return;
  question.out(latent, path_join("samples", "0"), pictures->dtype, shape_of(*pictures));
  question.out(latent, path_join("samples", "1"), sound->dtype, shape_of(*sound));
  const auto mask = question.tensor(video_latent, "noise_mask"),
             sound_mask = question.tensor(audio_latent, "noise_mask");
  if (!mask && !sound_mask) return;
  const auto tell = [&](const char* index, const auto& told, const heddle_tensor_info& samples) {
    question.out(latent, path_join("noise_mask", index), HEDDLE_F32,
                 shape_of(told ? *told : samples));
  };
  tell("0", mask, *pictures);
  tell("1", sound_mask, *sound);
}

void LTXVSeparateAVLatent::infer(Infer& question) {
  for (const char* field : {"samples", "noise_mask"}) {
    if (const auto told = question.tensor(av_latent, path_join(field, "0")))
      question.out(video, field, told->dtype, shape_of(*told));
    if (const auto told = question.tensor(av_latent, path_join(field, "1")))
      question.out(audio, field, told->dtype, shape_of(*told));
  }
}

void LTXVSeparateAVLatent::execute(Context& ctx) {
  const Value both = ctx[av_latent];
  const Value samples = samples_in(both, "av_latent");
  if (!is_pair(samples))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "av_latent has pictures or sound only, and nothing to separate. Link a latent that "
                "has both, as LTXVConcatAVLatent makes it.");
  const auto part = [&](std::uint32_t index) {
    Record one(both);
    one.set("samples", value_of(tensor_at(samples, index)));
    if (has_mask(both)) one.set("noise_mask", value_of(tensor_at(both.field("noise_mask"), index)));
    return one.value();
  };
  ctx[video] = part(0);
  ctx[audio] = part(1);
}

void LTXVEmptyLatentAudio::execute(Context& ctx) {
  const Shape shape =
      sound_shape(ctx[audio_vae], ctx[batch_size], ctx[frames_number], ctx[frame_rate]);
  ctx[out] = Record()
                 .set("samples", value_of(filled(ctx, shape, 0.0f)))
                 .set("type", value_of("audio"))
                 .value();
}

void LTXVEmptyLatentAudio::infer(Infer& question) {
  const std::optional<Value> vae = question[audio_vae];
  const auto batch = question[batch_size], frames = question[frames_number];
  const auto rate = question[frame_rate];
  if (vae && batch && frames && rate)
    question.out(out, "samples", HEDDLE_F32, sound_shape(*vae, *batch, *frames, *rate));
}

void EmptyMiniMaxH3LatentAV::execute(Context& ctx) {
  const std::int64_t pictures = blocks::minimax_pictures(ctx[length]);
  const Shape video = blocks::minimax_video_shape(pictures, ctx[height], ctx[width]);
  ctx[out] = Record()
                 .set("samples",
                      list_of({value_of(filled(ctx, video, 0.0f)),
                               value_of(filled(ctx, blocks::minimax_sound_shape(pictures), 0.0f))}))
                 .value();
}

void EmptyMiniMaxH3LatentAV::infer(Infer& question) {
  const auto rows = question[height], columns = question[width], count = question[length];
  if (!rows || !columns || !count) return;
  const std::int64_t pictures = blocks::minimax_pictures(*count);
  question.out(out, path_join("samples", "0"), HEDDLE_F32,
               blocks::minimax_video_shape(pictures, *rows, *columns));
  question.out(out, path_join("samples", "1"), HEDDLE_F32, blocks::minimax_sound_shape(pictures));
}

}  // namespace heddle::samplers
