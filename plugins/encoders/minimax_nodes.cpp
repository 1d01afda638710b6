#include "minimax_nodes.h"

#include <algorithm>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "encode.h"
#include "lanczos_picture.h"
#include "pictures.h"
#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/h3_clips.h"
#include "plugins/blocks/minimax_latents.h"
#include "text_nodes.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

// The field of a record of reference_latents with the picture of the video at which it stands.
constexpr const char* kShownAt = "frame";
constexpr std::int64_t kColoursShown = 3;

// The prompt as it is, behind the pictures. Source: the publishers' pipeline in diffusers.
Prompt minimax_prompt(const std::string& text, std::size_t pictures, const GridSize& size) {
  Prompt prompt{.text = "", .by_encoder = {}};
  for (std::size_t i = 0; i < pictures; ++i) {
    prompt.pictures.push_back({size});
    prompt.text +=
        "<Picture " + std::to_string(i + 1) + ">: <|vision_start|><|image_pad|><|vision_end|>";
  }
  prompt.text += text;
  prompt.tells_pictures = true;
  return prompt;
}

Tensor colours_of(Context& ctx, const Tensor& image, std::int64_t picture) {
  return ops::contiguous(ctx, image.slice(0, picture, picture + 1).slice(3, 0, kColoursShown));
}

void check_clips(const Value& vae) {
  if (vae::codes_clips(vae)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "vae: pictures are shown to MiniMax H3 as latents of its own video autoencoder, and "
              "this is another one. Load minimax_h3_video_vae with VAELoader.");
}

// Pictures (F, H, W, 3) f32 that the model is shown from picture `frame` of the video on.
Value shown_at(Context& ctx, const Value& vae, const Tensor& pictures, std::int64_t frame) {
  const vae::Autoencoder autoencoder(vae);
  const Tensor covered = vae::covered_by_cells(
      ctx, ctx.upload(pictures.shape(), HEDDLE_F32, pictures.data<float>()), autoencoder);
  const Tensor mean =
      vae::encoded_clips(ctx, vae, covered, autoencoder, vae::published_tiling(vae));
  Record record(vae::latent_of(ctx, mean, autoencoder).value());
  return record.set(kShownAt, value_of(frame)).value();
}

// The latent of so many pictures of a size, and the calls that make it; none: not known yet.
std::optional<Shape> infer_shown(Infer& question, const Value& vae, std::int64_t pictures,
                                 const GridSize& size) {
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(vae);
  if (!autoencoder || autoencoder->channels == 0 || !vae::codes_clips(vae)) return {};
  const std::int64_t side = autoencoder->downscale;
  const Shape covered{pictures, autoencoder->cells(size.height) * side,
                      autoencoder->cells(size.width) * side, autoencoder->colours};
  vae::tell_encoded_clips(question, vae, covered, *autoencoder, vae::published_tiling(vae));
  return vae::encoded_clips_shape(covered, *autoencoder);
}

// Bytes of pictures (F, H, W, C) that are scaled one by one and kept.
std::uint64_t shown_bytes(const Shape& image, std::int64_t pictures, const GridSize& to) {
  return 2 * scaling_bytes({1, image[1], image[2], image[3]}, to) +
         sizeof(float) * std::uint64_t(checked_product(
                             {pictures, to.height, to.width, kColoursShown}, "a picture's size"));
}

// Behind what the conditioning carries already.
Value with_shown(const Value& list, const std::vector<Value>& shown) {
  if (shown.empty()) return list;
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value before = list.item(i).field("reference_latents");
    std::vector<Value> all;
    for (std::uint32_t k = 0; k < before.count(); ++k) all.push_back(before.item(k));
    all.insert(all.end(), shown.begin(), shown.end());
    entries.push_back(Record(list.item(i)).set("reference_latents", list_of(all)).value());
  }
  return list_of(entries);
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

}  // namespace

void MiniMaxH3ImageToVideo::execute(Context& ctx) {
  const GridSize size{ctx[height], ctx[width]};
  const std::int64_t pictures = blocks::minimax_pictures(ctx[length]);
  std::vector<Tensor> read;
  std::vector<Value> shown;
  const auto show = [&](const Input<Value>& port, std::int64_t frame, bool is_cropped) {
    if (!ctx.has(port)) return;
    const Value value = ctx[vae];
    check_clips(value);
    const Tensor image = ctx[port].as<Tensor>();
    picture_size(image.shape(), port.port.name);
    read.push_back(lanczos_picture(ctx, colours_of(ctx, image, 0), size, is_cropped));
    shown.push_back(shown_at(ctx, value, read.back(), frame));
  };
  show(first_frame, 0, false);
  show(last_frame, pictures - 1, true);
  Prompt given = minimax_prompt(ctx[prompt], read.size(), size);
  for (std::size_t i = 0; i < read.size(); ++i) given.pictures[i].pixels = read[i];
  ctx[positive] = with_shown(encode_prompt(ctx, ctx[clip], given), shown);
  const auto empty = [&](const Shape& shape) {
    const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
    std::fill_n(samples.data<float>(), samples.count(), 0.0f);
    return value_of(samples);
  };
  ctx[latent] =
      Record()
          .set("samples",
               list_of({empty(blocks::minimax_video_shape(pictures, size.height, size.width)),
                        empty(blocks::minimax_sound_shape(pictures))}))
          .value();
}

std::uint64_t MiniMaxH3ImageToVideo::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&prompt});
}

void MiniMaxH3ImageToVideo::infer(Infer& question) {
  const auto rows = question[height], columns = question[width], count = question[length];
  if (!rows || !columns || !count) return;
  const GridSize size{*rows, *columns};
  const std::int64_t pictures = blocks::minimax_pictures(*count);
  question.out(latent, "samples.0", HEDDLE_F32,
               blocks::minimax_video_shape(pictures, *rows, *columns));
  question.out(latent, "samples.1", HEDDLE_F32, blocks::minimax_sound_shape(pictures));
  std::vector<Shape> shown;
  std::uint64_t bytes = 0;
  for (const Input<Value>* port : {&first_frame, &last_frame}) {
    const std::optional<Shape> image = question.shape(*port);
    if (!image) continue;  // not linked
    const std::optional<Value> value = question[vae];
    if (image->size() != 4 || !value) return;
    const std::optional<Shape> made = infer_shown(question, *value, 1, size);
    if (!made) return;
    shown.push_back(*made);
    bytes += shown_bytes(*image, 1, size);
  }
  if (bytes > 0) question.host_scratch(bytes);
  const auto from = question[clip];
  const auto text = question[prompt];
  if (!from || !text) return;
  const std::size_t entries =
      infer_prompt(question, *from, minimax_prompt(*text, shown.size(), size), positive);
  for (std::size_t i = 0; i < entries; ++i)
    for (std::size_t k = 0; k < shown.size(); ++k)
      question.out(positive,
                   std::to_string(i) + ".reference_latents." + std::to_string(k) + ".samples",
                   HEDDLE_F32, shown[k]);
}

void MiniMaxH3AddGuide::execute(Context& ctx) {
  if (ctx.has(audio))
    throw Error(HEDDLE_UNSUPPORTED,
                "audio is linked, and samplers do not show MiniMax H3 sounds yet. Take the link "
                "away.");
  if (!ctx.has(image)) {
    ctx[out] = ctx[positive];
    return;
  }
  if (!ctx.has(vae))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: nothing is linked, and an image is to be encoded. Link the video "
                "autoencoder of MiniMax H3.");
  const Value value = ctx[vae], both = ctx[latent].field("samples");
  check_clips(value);
  const Value video = both.count() > 0 ? both.item(0) : both;
  const GuidedVideo guided =
      GuidedVideo::of(video.is(HEDDLE_KIND_TENSOR) ? video.as<Tensor>().shape() : Shape());
  const Tensor given = ctx[image].as<Tensor>();
  picture_size(given.shape(), "image");
  const std::int64_t count = guide_pictures(given.size(0)),
                     begin = guided.begin(ctx[frame_idx], count);
  const Tensor pictures =
      ctx.make_host({count, guided.size.height, guided.size.width, kColoursShown}, HEDDLE_F32);
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor one = lanczos_picture(ctx, colours_of(ctx, given, i), guided.size, true);
    std::copy_n(one.data<float>(), one.count(), pictures.data<float>() + i * one.count());
  }
  ctx[out] = with_shown(ctx[positive], {shown_at(ctx, value, pictures, begin)});
}

void MiniMaxH3AddGuide::infer(Infer& question) {
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, positive);
  if (const std::optional<Shape> given = question.shape(image)) {
    const std::optional<heddle_tensor_info> video = question.tensor(latent, "samples.0");
    const std::optional<Value> value = question[vae];
    if (given->size() != 4 || !video || video->rank != 5 || !value) return;
    const GuidedVideo guided = GuidedVideo::of(blocks::shape_of(*video));
    const std::int64_t count = guide_pictures((*given)[0]);
    const std::optional<Shape> made =
        count < 1 ? std::nullopt : infer_shown(question, *value, count, guided.size);
    if (!made) return;
    question.host_scratch(shown_bytes(*given, count, guided.size));
    for (blocks::EntryShapes& entry : entries)
      entry.references.push_back(tensor_info(HEDDLE_F32, *made));
  }
  blocks::infer_entries(question, out, entries);
}

}  // namespace heddle::encoders
