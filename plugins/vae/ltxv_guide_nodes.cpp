#include "plugins/vae/ltxv_guide_nodes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <heddle/ops.hpp>

#include "plugins/vae/ltxv_guide_fields.h"
#include "plugins/vae/ltxv_iclora_node.h"
#include "plugins/vae/ltxv_latents.h"
#include "plugins/vae/ltxv_pictures.h"

namespace heddle::vae {
namespace {

// Where a guide of so many pictures stands.
struct GuidePlace {
  std::int64_t pictures = 0;  // that are encoded
  std::int64_t begin = 0;     // picture of the video
  std::int64_t frames = 0;    // of the latent, that it gets
  bool is_behind = false;     // several pictures behind others: none of them is a frame by itself
  std::int64_t factor = 1;    // a token is for so many rows and columns

  std::vector<Value> keyframes() const {
    std::vector<Value> made;
    for (std::int64_t f = 0; f < frames; ++f) {
      const std::int64_t first = is_behind ? f * kLtxvFrames
                                           : std::max<std::int64_t>(0, (f - 1) * kLtxvFrames + 1),
                         last = is_behind ? (f + 1) * kLtxvFrames : f * kLtxvFrames + 1;
      std::vector<Value> told{value_of(begin + first), value_of(begin + last)};
      if (factor > 1) told.push_back(value_of(factor));
      made.push_back(list_of(told));
    }
    return made;
  }
};

// given: pictures; frames: of the latent without guides; index: as the node is told it. Throws
// where the guide is longer than the rest of the video.
GuidePlace guide_place(std::int64_t given, std::int64_t frames, std::int64_t index) {
  GuidePlace place;
  place.pictures = whole_ltxv_frames(given);
  place.begin =
      index < 0 ? std::max<std::int64_t>((frames - 1) * kLtxvFrames + 1 + index, 0) : index;
  place.is_behind = place.pictures > 1 && place.begin != 0;
  if (place.is_behind) place.begin = (place.begin - 1) / kLtxvFrames * kLtxvFrames + 1;
  place.frames = ltxv_latent_frames(place.pictures) - (place.is_behind ? 1 : 0);
  const std::int64_t first = (place.begin + kLtxvFrames - 1) / kLtxvFrames;
  if (first + place.frames > frames)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "frame_idx: " + std::to_string(place.pictures) + " pictures at picture " +
                    std::to_string(place.begin) + " are frames " + std::to_string(first) + " to " +
                    std::to_string(first + place.frames - 1) + " of the latent, which has " +
                    std::to_string(frames) +
                    ". Give a smaller frame_idx, fewer pictures or a longer latent.");
  return place;
}

// Of frames that are encoded already, which may begin before the video. index: of the latent's
// frames. Throws where they end behind it.
GuidePlace latent_guide_place(const Shape& guide, const Shape& samples, std::int64_t index) {
  if (index + guide[2] > samples[2])
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent_idx: " + std::to_string(guide[2]) + " frames from frame " +
                    std::to_string(index) + " on end behind the latent, which has " +
                    std::to_string(samples[2]) +
                    ". Give a smaller latent_idx, a shorter guide or a longer latent.");
  GuidePlace place;
  place.begin = index <= 0 ? index * kLtxvFrames : 1 + (index - 1) * kLtxvFrames;
  place.frames = guide[2];
  place.is_behind = place.frames > 1 && place.begin != 0;
  place.factor = samples[3] / std::max<std::int64_t>(guide[3], 1);
  if (guide[1] != samples[1] || place.factor < 1 || guide[3] * place.factor != samples[3] ||
      guide[4] * place.factor != samples[4])
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "guiding_latent: it has " + std::to_string(guide[1]) + " channels of " +
                    std::to_string(guide[4]) + " x " + std::to_string(guide[3]) +
                    " places, the latent " + std::to_string(samples[1]) + " of " +
                    std::to_string(samples[4]) + " x " + std::to_string(samples[3]) +
                    ". Both sides of the latent have to be the same whole number times those of "
                    "the guide.");
  return place;
}

void check_factor(std::int64_t factor, std::int64_t rows, std::int64_t columns) {
  if (rows % factor == 0 && columns % factor == 0) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "latent: its " + std::to_string(columns) + " x " + std::to_string(rows) +
                  " places are not divisible by " + std::to_string(factor) +
                  ", the reference_downscale_factor of iclora_parameters. Make a latent whose "
                  "sides in pixels are divisible by " +
                  std::to_string(32 * factor) + ".");
}

// Of a mask (B, 1, F, 1|h, 1|w), which is told place by place where the guide has a factor.
Shape guided_mask_shape(Shape mask, const Shape& samples, const GuidePlace& place) {
  if (mask.size() != std::size_t(kVideoAxes)) return mask;
  mask[2] += place.frames;
  if (place.factor == 1) return mask;
  for (const std::size_t axis : {std::size_t(3), std::size_t(4)}) {
    if (mask[axis] != 1 && mask[axis] != samples[axis])
      throw Error(HEDDLE_UNSUPPORTED, "latent: its noise mask has " + std::to_string(mask[4]) +
                                          " x " + std::to_string(mask[3]) +
                                          " places, its samples " + std::to_string(samples[4]) +
                                          " x " + std::to_string(samples[3]) +
                                          ". Set the mask behind the nodes that add pictures.");
    mask[axis] = samples[axis];
  }
  return mask;
}

// A noise mask with the guide's frames behind its own: 1 less the strength, but for places that are
// no tokens of the guide, which have -1 less the strength. One above 1 counts as 1 here.
Tensor guided_mask(Context& ctx, const Tensor& own, const Shape& samples, const GuidePlace& place,
                   double strength) {
  const Shape shape = guided_mask_shape(own.shape(), samples, place);
  const Tensor made = ctx.make(shape, HEDDLE_F32);
  const std::int64_t count = own.size(2);
  const Tensor before = made.slice(2, 0, count);
  ops::fill(ctx, before, 0);
  ops::add_into(ctx, before, own, before);
  const double drawn = std::max(0.0, 1 - strength);
  if (place.factor == 1) {
    ops::fill(ctx, made.slice(2, count, shape[2]), drawn);
    return made;
  }
  std::vector<float> plane;
  for (std::int64_t y = 0; y < shape[3]; ++y)
    for (std::int64_t x = 0; x < shape[4]; ++x)
      plane.push_back(float(y % place.factor == 0 && x % place.factor == 0 ? drawn : drawn - 2));
  const Tensor pattern = ctx.upload({1, 1, 1, shape[3], shape[4]}, HEDDLE_F32, plane.data());
  for (std::int64_t frame = count; frame < shape[2]; ++frame) put_frames(ctx, pattern, made, frame);
  return made;
}

// The latent with a guide's frames behind its own. encoded: a LATENT, whose units the result has.
Value guided_latent(Context& ctx, const Value& given, const Value& encoded, const Tensor& frames,
                    const GuidePlace& place, double strength) {
  const Tensor samples = video_samples(given);
  const std::int64_t count = samples.size(2), all = count + place.frames;
  const Tensor made = longer(ctx, samples, place.frames);
  if (place.factor > 1) ops::fill(ctx, made.slice(2, count, all), 0);
  put_frames(ctx, frames, made, count, place.factor);
  return joined_latent(given, encoded, made,
                       guided_mask(ctx, guide_mask_of(ctx, given, samples.shape()), samples.shape(),
                                   place, strength));
}

// What conditionings are told of a guide. mask: how much it is looked at, or empty.
GuideFields told_guide(const GuidePlace& place, double strength, const Value& mask) {
  Record guide;
  guide.set("frames", value_of(place.frames)).set("strength", value_of(strength));
  guide.set("is_masked", value_of(bool(mask)));
  if (mask) guide.set("mask", mask);
  return {place.keyframes(), {guide.value()}};
}
// The same before a run, with the latent's shapes.
template <class Node>
void tell_guided(Infer& question, const Shape& samples, const GuidePlace& place, double strength) {
  const std::optional<heddle_tensor_info> mask = question.tensor(Node::attention_mask);
  const GuideFields added = told_guide(place, strength, mask ? blocks::told_info(*mask) : Value());
  const auto append = [&](GuideFields& fields) {
    fields.keyframes.insert(fields.keyframes.end(), added.keyframes.begin(), added.keyframes.end());
    fields.guides.push_back(added.guides.front());
  };
  infer_guides(question, Node::positive, Node::positive_out, append);
  infer_guides(question, Node::negative, Node::negative_out, append);
  Shape made = samples;
  made[2] += place.frames;
  question.out(Node::latent, "samples", HEDDLE_F32, made);
  question.out(Node::latent, "noise_mask", HEDDLE_F32,
               guided_mask_shape(told_mask(question, Node::latent_in, samples), samples, place));
}

// Samples and mask apart: its units.
Value units_of(const Value& latent) {
  Record units;
  for (std::uint32_t i = 0; i < latent.count(); ++i)
    if (const std::string key = latent.key(i); key != "samples" && key != "noise_mask")
      units.set(latent.key(i), latent.item(i));
  return units.value();
}

}  // namespace

void LTXVAddGuide::execute(Context& ctx) {
  const Value given = ctx[latent_in], autoencoder = ctx[vae];
  const Tensor samples = video_samples(given), pictures = ctx[image];
  const std::int64_t own = samples.size(2) - keyframes_of(ctx[positive]);
  GuidePlace place = guide_place(pictures.rank() == 4 ? pictures.size(0) : 1, own, ctx[frame_idx]);
  place.factor = ctx.has(iclora_parameters) ? reference_factor(ctx[iclora_parameters]) : 1;
  check_factor(place.factor, samples.size(3), samples.size(4));
  const Record encoded =
      encoded_ltxv_pictures(ctx, autoencoder, pictures, {place.pictures, place.is_behind},
                            pixels_of(samples, Autoencoder(autoencoder), place.factor));
  Tensor frames = encoded.value().get<Tensor>("samples", {});
  check_encoded(frames, samples, place.factor);
  if (place.is_behind) frames = frames.slice(2, 1, frames.size(2));
  const double by = ctx[strength];
  ctx[latent] = guided_latent(ctx, given, encoded.value(), frames, place, by);
  const GuideFields added =
      told_guide(place, by, ctx.has(attention_mask) ? Value(ctx[attention_mask]) : Value());
  ctx[positive_out] = with_guides(ctx[positive], added);
  ctx[negative_out] = with_guides(ctx[negative], added);
}

void LTXVAddGuide::infer(Infer& question) {
  const auto samples = told_video(question, latent_in), pictures = question.shape(image);
  const auto index = question[frame_idx];
  const auto by = question[strength];
  const std::optional<Value> value = question[vae], parameters = question[iclora_parameters];
  if (!samples || !pictures || pictures->size() != 4 || (*pictures)[0] < 1 || !index || !by) return;
  GuidePlace place =
      guide_place((*pictures)[0], (*samples)[2] - told_keyframes(question, positive), *index);
  place.factor = parameters ? reference_factor(*parameters) : 1;
  check_factor(place.factor, (*samples)[3], (*samples)[4]);
  tell_guided<LTXVAddGuide>(question, *samples, place, *by);
  const std::optional<Autoencoder> autoencoder = value ? usable(*value) : std::nullopt;
  if (autoencoder)
    tell_ltxv_pictures(question, *value, *autoencoder, place.pictures,
                       {(*samples)[3] / place.factor, (*samples)[4] / place.factor});
}

void LTXVAddLatentGuide::execute(Context& ctx) {
  const Value given = ctx[latent_in], guide = ctx[guiding_latent];
  const Tensor samples = video_samples(given), frames = video_samples(guide);
  const GuidePlace place = latent_guide_place(frames.shape(), samples.shape(), ctx[latent_idx]);
  if (given.get<bool>("scaled", false) && !guide.get<bool>("scaled", false))
    throw Error(HEDDLE_UNSUPPORTED,
                "guiding_latent: it is in the autoencoder's units, the latent in the model's. "
                "Decode and encode it (VAEDecode, VAEEncode).");
  if (frames.size(0) != 1)
    throw Error(HEDDLE_UNSUPPORTED, "guiding_latent: it holds " + std::to_string(frames.size(0)) +
                                        " videos. Link one (LatentFromBatch).");
  const double by = ctx[strength];
  ctx[latent] = guided_latent(ctx, given, units_of(guide), frames, place, by);
  const GuideFields added =
      told_guide(place, by, ctx.has(attention_mask) ? Value(ctx[attention_mask]) : Value());
  ctx[positive_out] = with_guides(ctx[positive], added);
  ctx[negative_out] = with_guides(ctx[negative], added);
}

void LTXVAddLatentGuide::infer(Infer& question) {
  const auto samples = told_video(question, latent_in),
             guide = told_video(question, guiding_latent);
  const auto index = question[latent_idx];
  const auto by = question[strength];
  if (samples && guide && index && by)
    tell_guided<LTXVAddLatentGuide>(question, *samples,
                                    latent_guide_place(*guide, *samples, *index), *by);
}

void LTXVCropGuides::execute(Context& ctx) {
  const Value given = ctx[latent_in];
  const std::int64_t guides = keyframes_of(ctx[positive]);
  ctx[positive_out] = without_guides(ctx[positive]);
  ctx[negative_out] = without_guides(ctx[negative]);
  ctx[latent] = given;
  if (guides == 0) return;
  const Tensor samples = video_samples(given);
  const std::int64_t kept = samples.size(2) - guides;
  if (kept < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: it has " + std::to_string(samples.size(2)) +
                    " frames, of which the conditioning says that " + std::to_string(guides) +
                    " are guides. Link the latent that LTXVAddGuide's was made into.");
  Record cropped(given);
  cropped.set("samples", value_of(ops::contiguous(ctx, samples.slice(2, 0, kept))));
  const Value mask = given.field("noise_mask");
  if (mask && !mask.is(HEDDLE_KIND_NONE))
    cropped.set("noise_mask",
                value_of(ops::contiguous(
                    ctx, guide_mask_of(ctx, given, samples.shape()).slice(2, 0, kept))));
  ctx[latent] = cropped.value();
}

void LTXVCropGuides::infer(Infer& question) {
  const auto clear = [](GuideFields& fields) { fields = {}; };
  const std::int64_t guides = told_keyframes(question, positive);
  infer_guides(question, positive, positive_out, clear);
  infer_guides(question, negative, negative_out, clear);
  const auto samples = told_video(question, latent_in);
  if (!samples || (*samples)[2] <= guides) return;
  Shape made = *samples;
  made[2] -= guides;
  question.out(latent, "samples", HEDDLE_F32, made);
  if (auto mask = question.shape(latent_in, "noise_mask")) {
    if (mask->size() == made.size()) (*mask)[2] -= guides;
    question.out(latent, "noise_mask", HEDDLE_F32, *mask);
  }
}

void LTXVImgToVideoInplace::execute(Context& ctx) {
  const Value given = ctx[latent_in], autoencoder = ctx[vae];
  ctx[latent] = given;
  if (ctx[bypass]) return;
  const Tensor samples = video_samples(given), pictures = ctx[image];
  const std::int64_t count = whole_ltxv_frames(pictures.rank() == 4 ? pictures.size(0) : 1),
                     frames = ltxv_latent_frames(count);
  if (frames > samples.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: " + std::to_string(count) + " pictures are " + std::to_string(frames) +
                    " frames of the latent, which has " + std::to_string(samples.size(2)) +
                    ". Give a longer one, or fewer pictures.");
  const Record encoded = encoded_ltxv_pictures(ctx, autoencoder, pictures, {count},
                                               pixels_of(samples, Autoencoder(autoencoder)));
  const Tensor first = encoded.value().get<Tensor>("samples", {});
  check_encoded(first, samples);
  const Tensor made = longer(ctx, samples, 0),
               mask = longer(ctx, guide_mask_of(ctx, given, samples.shape()), 0);
  put_frames(ctx, first, made, 0);
  ops::fill(ctx, mask.slice(2, 0, frames), 1 - ctx[strength]);
  ctx[latent] = joined_latent(given, encoded.value(), made, mask);
}

void LTXVImgToVideoInplace::infer(Infer& question) {
  const auto samples = told_video(question, latent_in), pictures = question.shape(image);
  const auto skips = question[bypass];
  const std::optional<Value> value = question[vae];
  if (!samples || !skips) return;
  question.out(latent, "samples", HEDDLE_F32, *samples);
  if (*skips) {
    if (const auto mask = question.shape(latent_in, "noise_mask"))
      question.out(latent, "noise_mask", HEDDLE_F32, *mask);
    return;
  }
  question.out(latent, "noise_mask", HEDDLE_F32, told_mask(question, latent_in, *samples));
  const std::optional<Autoencoder> autoencoder = value ? usable(*value) : std::nullopt;
  if (autoencoder && pictures && pictures->size() == 4 && (*pictures)[0] > 0)
    tell_ltxv_pictures(question, *value, *autoencoder, whole_ltxv_frames((*pictures)[0]),
                       {(*samples)[3], (*samples)[4]});
}

}  // namespace heddle::vae
