#include "minimax_nodes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "encode.h"
#include "minimax_prompts.h"
#include "minimax_shown.h"
#include "pictures.h"
#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/minimax_latents.h"
#include "text_nodes.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

Value at_frame(Record record, std::int64_t frame) {
  return record.set(blocks::kMinimaxFrame, value_of(frame)).value();
}

// Pictures of a guide of so many: whole clips, or one.
std::int64_t guide_pictures(std::int64_t given) {
  constexpr std::int64_t kLeast = 5, kPeriod = 17;
  return given < kLeast ? std::min<std::int64_t>(given, 1)
                        : (given - kLeast) / kPeriod * kPeriod + kLeast;
}

// The video of a pair of latents, by its shape (1, 24, F, h, w).
struct GuidedVideo {
  std::int64_t pictures = 0;
  GridSize size;

  static GuidedVideo of(const Shape& samples) {
    constexpr std::int64_t kCell = 16;
    if (samples.size() != 5 || samples[2] < 2)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "latent: this is no video of MiniMax H3 with its sound. Link "
                  "EmptyMiniMaxH3LatentAV, MiniMaxH3ImageToVideo or what samplers make of it.");
    return {blocks::minimax_pictures_of(samples[2]), {samples[3] * kCell, samples[4] * kCell}};
  }
  // Where so many pictures begin; negative ones count from the end. Throws beyond the video.
  std::int64_t begin(std::int64_t index, std::int64_t count) const {
    const std::int64_t first = index < 0 ? pictures + index : index;
    if (first >= 0 && count <= pictures && first <= pictures - count) return first;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "frame_idx: " + std::to_string(count) + " pictures from " + std::to_string(index) +
                    " on are not within the " + std::to_string(pictures) +
                    " of the video. Give 0 to " + std::to_string(pictures - count) + ", or " +
                    std::to_string(-pictures) + " to " + std::to_string(-count) + ".");
  }
};

// Moments of a video's sound, of so many, from a picture on. Throws where there are none.
std::int64_t moments_from(std::int64_t begin, std::int64_t all) {
  const auto left =
      std::int64_t(std::floor(double(all) - blocks::kMinimaxPictureTime * double(begin)));
  if (left > 0) return left;
  throw Error(HEDDLE_INVALID_ARGUMENT, "frame_idx: picture " + std::to_string(begin) +
                                           " is behind the end of the video's sound. Give a "
                                           "smaller one.");
}

// Of a LATENT's pair, or of a single tensor the first alone.
Shape part_shape(const Value& latent, std::uint32_t part) {
  const Value samples = latent.field("samples");
  const Value one = samples.count() > part ? samples.item(part) : part == 0 ? samples : Value();
  return one.is(HEDDLE_KIND_TENSOR) ? one.as<Tensor>().shape() : Shape();
}

void check_linked(Context& ctx, const Input<Value>& vae, const char* what, const char* which) {
  if (ctx.has(vae)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(vae.port.name) + ": nothing is linked, and " +
                                           what + " is to be encoded. Link the " + which +
                                           " autoencoder of MiniMax H3.");
}

// The sound of a guide, cut to what is left of the video's.
Value guide_sound(Context& ctx, const Shape& video_sound, std::int64_t begin) {
  using Node = MiniMaxH3AddGuide;
  check_linked(ctx, Node::audio_vae, "a sound", "audio");
  if (video_sound.size() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: the video has no sound beside it, and one is to be heard in it. Link "
                "EmptyMiniMaxH3LatentAV, MiniMaxH3ImageToVideo or what samplers make of it.");
  const std::int64_t most = moments_from(begin, video_sound[3]);
  check_sounds(ctx[Node::audio_vae]);
  Record record = shown_sound(ctx, ctx[Node::audio_vae], ctx[Node::audio], "audio");
  const Tensor samples = record.value().field("samples").as<Tensor>();
  if (samples.size(3) > most) record.set("samples", value_of(samples.slice(3, 0, most)));
  return at_frame(record, begin);
}

}  // namespace

void MiniMaxH3ImageToVideo::execute(Context& ctx) {
  const GridSize size{ctx[height], ctx[width]};
  const std::int64_t pictures = blocks::minimax_pictures(ctx[length]);
  MinimaxPrompt given;
  MinimaxShown shown;
  const auto show = [&](const Input<Value>& port, std::int64_t frame, bool is_cropped) {
    if (!ctx.has(port)) return;
    const Value value = ctx[vae];
    check_clips(value);
    const Tensor image = ctx[port].as<Tensor>();
    picture_size(image.shape(), port.port.name);
    const Tensor scaled = scaled_pictures(ctx, image, 1, size, is_cropped);
    given.add_picture({size, scaled});
    shown.clips.push_back(at_frame(shown_clip(ctx, value, scaled), frame));
  };
  show(first_frame, 0, false);
  show(last_frame, pictures - 1, true);
  ctx[positive] = with_shown(encode_prompt(ctx, ctx[clip], given.with(ctx[prompt])), shown);
  ctx[latent] = empty_video(ctx, pictures, size);
}

std::uint64_t MiniMaxH3ImageToVideo::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&prompt});
}

void MiniMaxH3ImageToVideo::infer(Infer& question) {
  const auto rows = question[height], columns = question[width], count = question[length];
  if (!rows || !columns || !count) return;
  const GridSize size{*rows, *columns};
  infer_empty_video(question, latent, blocks::minimax_pictures(*count), size);
  MinimaxPrompt given;
  std::vector<Shape> shown;
  std::uint64_t bytes = 0;
  for (const Input<Value>* port : {&first_frame, &last_frame}) {
    const std::optional<Shape> image = question.shape(*port);
    if (!image) continue;  // not linked
    const std::optional<Value> value = question[vae];
    if (image->size() != 4 || !value) return;
    const std::optional<Shape> made = tell_clip(question, *value, 1, size);
    if (!made) return;
    given.add_picture({size});
    shown.push_back(*made);
    bytes += scaled_bytes(*image, 1, size);
  }
  if (bytes > 0) question.host_scratch(bytes);
  const auto from = question[clip];
  const auto text = question[prompt];
  if (!from || !text) return;
  const std::size_t entries = infer_prompt(question, *from, given.with(*text), positive);
  for (std::size_t i = 0; i < entries; ++i)
    for (std::size_t k = 0; k < shown.size(); ++k)
      question.out(positive,
                   std::to_string(i) + ".reference_latents." + std::to_string(k) + ".samples",
                   HEDDLE_F32, shown[k]);
}

void MiniMaxH3AddGuide::execute(Context& ctx) {
  if (!ctx.has(image) && !ctx.has(audio)) {
    ctx[out] = ctx[positive];
    return;
  }
  const Value video = ctx[latent];
  const GuidedVideo guided = GuidedVideo::of(part_shape(video, 0));
  MinimaxShown shown;
  std::int64_t count = 1;
  if (ctx.has(image)) {
    check_linked(ctx, vae, "an image", "video");
    check_clips(ctx[vae]);
    const Tensor given = ctx[image].as<Tensor>();
    picture_size(given.shape(), "image");
    count = guide_pictures(given.size(0));
  }
  const std::int64_t begin = guided.begin(ctx[frame_idx], count);
  if (ctx.has(image)) {
    const Tensor pictures = scaled_pictures(ctx, ctx[image].as<Tensor>(), count, guided.size, true);
    shown.clips.push_back(at_frame(shown_clip(ctx, ctx[vae], pictures), begin));
  }
  if (ctx.has(audio)) shown.sounds.push_back(guide_sound(ctx, part_shape(video, 1), begin));
  ctx[out] = with_shown(ctx[positive], shown);
}

void MiniMaxH3AddGuide::infer(Infer& question) {
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, positive);
  const std::optional<Shape> given = question.shape(image),
                             heard = question.shape(audio, "waveform");
  const std::optional<heddle_tensor_info> video = question.tensor(latent, "samples.0"),
                                          sound = question.tensor(latent, "samples.1");
  std::int64_t count = 1;
  if (!heard && question[audio_vae]) return;  // of a sound that is linked nothing is known yet
  if ((given || heard) && (!video || video->rank != 5)) return;
  if (given) {
    const std::optional<Value> value = question[vae];
    if (given->size() != 4 || !value) return;
    const GuidedVideo guided = GuidedVideo::of(blocks::shape_of(*video));
    count = guide_pictures((*given)[0]);
    const std::optional<Shape> made =
        count < 1 ? std::nullopt : tell_clip(question, *value, count, guided.size);
    if (!made) return;
    question.host_scratch(scaled_bytes(*given, count, guided.size));
    for (blocks::EntryShapes& entry : entries)
      entry.references.push_back(tensor_info(HEDDLE_F32, *made));
  }
  if (heard) {
    const std::optional<Value> value = question[audio_vae];
    const Value rate = question.part(audio, "sample_rate");
    const auto index = question[frame_idx];
    if (!value || !rate || !index || !sound || sound->rank != 4) return;
    const std::int64_t begin = GuidedVideo::of(blocks::shape_of(*video)).begin(*index, count);
    std::optional<Shape> made = tell_sound(question, *value, *heard, rate.as<std::int64_t>());
    if (!made) return;
    (*made)[3] = std::min((*made)[3], moments_from(begin, sound->shape[3]));
    for (blocks::EntryShapes& entry : entries)
      entry.sounds.push_back(tensor_info(HEDDLE_F32, *made));
  }
  blocks::infer_entries(question, out, entries);
}

}  // namespace heddle::encoders
