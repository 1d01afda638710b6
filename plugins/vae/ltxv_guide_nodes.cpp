#include "plugins/vae/ltxv_guide_nodes.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/entry_shapes.h"
#include "plugins/vae/ltxv_pictures.h"

namespace heddle::vae {
namespace {

constexpr const char* kKeyframes = "keyframe_idxs";
constexpr std::int64_t kVideoAxes = 5;

// Frames of guides that a CONDITIONING tells of.
std::int64_t keyframes_of(const Value& list) {
  return list.count() > 0 ? list.item(0).field(kKeyframes).count() : 0;
}

Value with_keyframes(const Value& list, const std::vector<Value>& added) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record entry(list.item(i));
    std::vector<Value> all;
    const Value old = list.item(i).field(kKeyframes);
    for (std::uint32_t k = 0; k < old.count(); ++k) all.push_back(old.item(k));
    all.insert(all.end(), added.begin(), added.end());
    entries.push_back(entry.set(kKeyframes, list_of(all)).value());
  }
  return list_of(entries);
}

Value without_keyframes(const Value& list) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record kept;
    const Value entry = list.item(i);
    for (std::uint32_t k = 0; k < entry.count(); ++k)
      if (entry.key(k) != kKeyframes) kept.set(entry.key(k), entry.item(k));
    entries.push_back(kept.value());
  }
  return list_of(entries);
}

// Where a guide of so many pictures stands.
struct GuidePlace {
  std::int64_t pictures = 0;  // that are encoded
  std::int64_t begin = 0;     // picture of the video
  std::int64_t frames = 0;    // of the latent, that it gets
  bool is_behind = false;     // several pictures behind others: none of them is a frame by itself

  std::vector<Value> keyframes() const {
    std::vector<Value> made;
    for (std::int64_t f = 0; f < frames; ++f) {
      const std::int64_t first = is_behind ? f * kLtxvFrames
                                           : std::max<std::int64_t>(0, (f - 1) * kLtxvFrames + 1),
                         last = is_behind ? (f + 1) * kLtxvFrames : f * kLtxvFrames + 1;
      made.push_back(list_of({value_of(begin + first), value_of(begin + last)}));
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

// The samples (B, C, F, h, w) of a LATENT of a video.
Tensor video_samples(const Value& latent) {
  const Value samples = latent.field("samples");
  if (samples.is(HEDDLE_KIND_LIST))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: this one is of pictures and sound. Link the pictures' latent "
                "(LTXVSeparateAVLatent), and join them again behind this node.");
  if (!samples.is(HEDDLE_KIND_TENSOR) || samples.as<Tensor>().rank() != kVideoAxes)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: its samples are not (batch, channels, frames, height, width). Link a "
                "latent of a video, such as that of EmptyLTXVLatentVideo.");
  return samples.as<Tensor>();
}

Shape guide_mask_shape(const Shape& samples) { return {samples[0], 1, samples[2], 1, 1}; }

// The noise mask of samples: ones where the latent has none.
Tensor guide_mask_of(Context& ctx, const Value& latent, const Shape& samples) {
  const Value given = latent.field("noise_mask");
  if (!given || given.is(HEDDLE_KIND_NONE)) {
    const Tensor mask = ctx.make(guide_mask_shape(samples), HEDDLE_F32);
    ops::fill(ctx, mask, 1);
    return mask;
  }
  const Tensor mask = given.as<Tensor>();
  if (mask.rank() != kVideoAxes || mask.size(2) != samples[2])
    throw Error(HEDDLE_UNSUPPORTED,
                "latent: its noise mask is not told frame by frame, as (batch, 1, " +
                    std::to_string(samples[2]) +
                    ", height, width). Set it behind the nodes that add pictures.");
  return mask;
}

// x with `more` frames behind its own.
Tensor longer(Context& ctx, const Tensor& x, std::int64_t more) {
  Shape shape = x.shape();
  shape[2] += more;
  const Tensor made = ctx.make(shape, HEDDLE_F32);
  ops::copy_into(ctx, x, made.slice(2, 0, x.size(2)));
  return made;
}

void check_encoded(const Tensor& encoded, const Tensor& samples) {
  for (const int axis : {1, 3, 4})
    if (encoded.size(axis) != samples.size(axis))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "vae: it encodes pictures to " + std::to_string(encoded.size(1)) +
                      " channels of " + std::to_string(encoded.size(4)) + " x " +
                      std::to_string(encoded.size(3)) + ", the latent has " +
                      std::to_string(samples.size(1)) + " of " + std::to_string(samples.size(4)) +
                      " x " + std::to_string(samples.size(3)) +
                      ". Load the autoencoder that belongs to the model.");
}

// Puts frames of one video into each of a batch, from `at` on.
void put_frames(Context& ctx, const Tensor& frames, const Tensor& to, std::int64_t at) {
  for (std::int64_t i = 0; i < to.size(0); ++i)
    ops::copy_into(ctx, frames, to.slice(0, i, i + 1).slice(2, at, at + frames.size(2)));
}

blocks::GridSize pixels_of(const Tensor& samples, const Autoencoder& autoencoder) {
  return {checked_product({samples.size(3), autoencoder.downscale}, "the height"),
          checked_product({samples.size(4), autoencoder.downscale}, "the width")};
}

// A LATENT with other samples and another mask; what is known of the encoded ones' units stays.
Value joined_latent(const Value& latent, const Value& encoded, const Tensor& samples,
                    const Tensor& mask) {
  Record made(latent);
  for (std::uint32_t i = 0; i < encoded.count(); ++i) made.set(encoded.key(i), encoded.item(i));
  return made.set("samples", value_of(samples)).set("noise_mask", value_of(mask)).value();
}

std::optional<Shape> told_video(const Infer& question, const Input<Value>& latent) {
  auto shape = question.shape(latent, "samples");
  return shape && shape->size() == std::size_t(kVideoAxes) ? shape : std::nullopt;
}
Shape told_mask(const Infer& question, const Input<Value>& latent, const Shape& samples) {
  return question.shape(latent, "noise_mask").value_or(guide_mask_shape(samples));
}

std::vector<Value> list_items(const Value& list) {
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  return items;
}

// Changes what each entry is known to say of keyframes.
template <class Change>
void infer_keyframes(Infer& question, const Input<Value>& in, const Output<Value>& out,
                     Change&& change) {
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, in);
  for (blocks::EntryShapes& entry : entries) {
    Record scope;
    for (std::uint32_t k = 0; k < entry.scope.count(); ++k)
      if (entry.scope.key(k) != kKeyframes) scope.set(entry.scope.key(k), entry.scope.item(k));
    std::vector<Value> keyframes = list_items(entry.scope.field(kKeyframes));
    change(keyframes);
    if (!keyframes.empty()) scope.set(kKeyframes, list_of(keyframes));
    entry.scope = scope.value();
  }
  blocks::infer_entries(question, out, entries);
}

// Frames of guides before a run.
std::int64_t told_keyframes(const Infer& question, const Input<Value>& in) {
  const std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, in);
  return entries.empty() ? 0 : entries.front().scope.field(kKeyframes).count();
}

}  // namespace

void LTXVAddGuide::execute(Context& ctx) {
  if (ctx.has(attention_mask) || ctx.has(iclora_parameters))
    throw Error(HEDDLE_UNSUPPORTED,
                "attention_mask and iclora_parameters are not supported. Leave them out.");
  const Value given = ctx[latent_in], autoencoder = ctx[vae];
  const Tensor samples = video_samples(given), pictures = ctx[image];
  const std::int64_t own = samples.size(2) - keyframes_of(ctx[positive]);
  const GuidePlace place =
      guide_place(pictures.rank() == 4 ? pictures.size(0) : 1, own, ctx[frame_idx]);
  const Record encoded =
      encoded_ltxv_pictures(ctx, autoencoder, pictures, {place.pictures, place.is_behind},
                            pixels_of(samples, Autoencoder(autoencoder)));
  Tensor frames = encoded.value().get<Tensor>("samples", {});
  check_encoded(frames, samples);
  if (place.is_behind) frames = frames.slice(2, 1, frames.size(2));
  const std::int64_t count = samples.size(2), all = count + place.frames;
  const Tensor made = longer(ctx, samples, place.frames);
  put_frames(ctx, frames, made, count);
  const Tensor mask = longer(ctx, guide_mask_of(ctx, given, samples.shape()), place.frames);
  ops::fill(ctx, mask.slice(2, count, all), std::max(0.0, 1 - ctx[strength]));
  ctx[latent] = joined_latent(given, encoded.value(), made, mask);
  ctx[positive_out] = with_keyframes(ctx[positive], place.keyframes());
  ctx[negative_out] = with_keyframes(ctx[negative], place.keyframes());
}

void LTXVAddGuide::infer(Infer& question) {
  const auto samples = told_video(question, latent_in), pictures = question.shape(image);
  const auto index = question[frame_idx];
  const std::optional<Value> value = question[vae];
  if (!samples || !pictures || pictures->size() != 4 || (*pictures)[0] < 1 || !index) return;
  const GuidePlace place =
      guide_place((*pictures)[0], (*samples)[2] - told_keyframes(question, positive), *index);
  const std::vector<Value> added = place.keyframes();
  const auto append = [&](std::vector<Value>& keyframes) {
    keyframes.insert(keyframes.end(), added.begin(), added.end());
  };
  infer_keyframes(question, positive, positive_out, append);
  infer_keyframes(question, negative, negative_out, append);
  Shape made = *samples, mask = told_mask(question, latent_in, *samples);
  made[2] += place.frames;
  if (mask.size() == made.size()) mask[2] += place.frames;
  question.out(latent, "samples", HEDDLE_F32, made);
  question.out(latent, "noise_mask", HEDDLE_F32, mask);
  const std::optional<Autoencoder> autoencoder = value ? usable(*value) : std::nullopt;
  if (autoencoder)
    tell_ltxv_pictures(question, *value, *autoencoder, place.pictures,
                       {(*samples)[3], (*samples)[4]});
}

void LTXVCropGuides::execute(Context& ctx) {
  const Value given = ctx[latent_in];
  const std::int64_t guides = keyframes_of(ctx[positive]);
  ctx[positive_out] = without_keyframes(ctx[positive]);
  ctx[negative_out] = without_keyframes(ctx[negative]);
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
  const auto clear = [](std::vector<Value>& keyframes) { keyframes.clear(); };
  const std::int64_t guides = told_keyframes(question, positive);
  infer_keyframes(question, positive, positive_out, clear);
  infer_keyframes(question, negative, negative_out, clear);
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
