#include "plugins/vae/vae_nodes.h"

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/decoder_noise.h"
#include "plugins/blocks/h3_clips.h"
#include "plugins/blocks/no_room.h"
#include "plugins/vae/tiled_nodes.h"
#include "plugins/vae/video_chunks.h"
#include "plugins/vae/video_pieces.h"
#include "plugins/vae/video_tiles.h"
#include "plugins/vae/whole_videos.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kLeastTile = 64, kLargestTile = 2048;  // pixels of a side

// The largest first; a tile is at most half of what found no room. `samples`: the latents' shape.
std::vector<std::int64_t> tile_sizes(const Shape& samples, std::int64_t downscale) {
  std::vector<std::int64_t> sizes;
  const double cells = double(samples[0]) * double(samples[2]) * double(samples[3]);
  for (std::int64_t size = kLargestTile; size >= kLeastTile; size /= 2)
    if (const std::int64_t side = size / downscale; side > 0 && 2.0 * double(side * side) <= cells)
      sizes.push_back(size);
  return sizes;
}
// Of videos (B, C, T, h, w) also those between: each tile goes through all chunks, so that few of
// them are soon done. A tile is at most two thirds of a frame.
std::vector<std::int64_t> video_tile_sizes(const Shape& samples, std::int64_t downscale) {
  std::vector<std::int64_t> sizes;
  const double cells = double(samples[3]) * double(samples[4]);
  for (std::int64_t size = kLargestTile; size >= kLeastTile; size /= 2)
    for (const std::int64_t one : {size, size / 4 * 3}) {
      const std::int64_t side = one / downscale;
      if (one >= kLeastTile && side > 0 && 3.0 * double(side * side) <= 2.0 * cells)
        sizes.push_back(one);
    }
  return sizes;
}
std::int64_t overlap_of(std::int64_t tile) { return tile / 4; }

// Tiles go through all of a video: its length takes no memory.
constexpr std::int64_t kAllFrames = std::int64_t{1} << 40;
VideoTiling even_tiles(std::int64_t size) { return {size, overlap_of(size), kAllFrames, 0, true}; }

// One call of a side of the autoencoder, with one pass over what goes in and one over what comes
// out; both are held while the model runs.
void infer_call(Infer& question, const Value& model, const Infer::Named& input,
                const Shape& result) {
  if (!model.is(HEDDLE_KIND_MODEL)) return;
  std::vector<Infer::Named> inputs{input};
  if (input.name == "z") tell_decoder_noise(model, input.shape, inputs);
  question.call(model, {{.constants = std::move(inputs), .steps = {}}});
  const std::int64_t elements =
      checked_sum({count_of(input.shape), count_of(result)}, "the pictures");
  const double bytes = double(sizeof(float)) * double(elements);
  question.cost(2 * double(elements), 2 * bytes, checked_cast<std::uint64_t>(bytes, "bytes"));
}

Tensor decode_whole(Context& ctx, const Value& vae, const Value& latent) {
  const Autoencoder autoencoder(vae);
  Tensor z = samples_of(latent, autoencoder);
  if (latent.get<bool>("scaled", false)) z = raw_of(ctx, z, latent, autoencoder);
  return ops::scale_clamp(ctx, decoded(ctx, model_of(vae, "decoder"), z), {0.5, 0.5, 0, 1});
}

}  // namespace

void VaeDecode::execute(Context& ctx) {
  const Value value = ctx[vae];
  if (codes_clips(value)) {
    ctx[image] = decoded_clips(ctx, value, ctx[samples], published_tiling(value), ctx[image].index);
    return;
  }
  Tensor made;
  const heddle_port_index output = ctx[image].index;
  std::string why =
      blocks::no_room([&] { return decoded_whole_video(ctx, value, ctx[samples], output); }, made);
  if (made) {
    ctx[image] = made;
    return;
  }
  const Value latent = without_frames(ctx[samples], value);
  const Tensor given = latent.get<Tensor>("samples", {});
  const bool is_video = given && is_of_frames(given.shape());
  if (why.empty())
    why = blocks::no_room(
        [&] {
          return is_video ? decoded_frames(ctx, value, latent, output)
                          : decode_whole(ctx, value, latent);
        },
        made);
  if (why.empty()) {
    ctx[image] = made;
    return;
  }
  const Autoencoder autoencoder(value);
  std::string last = why;
  for (const std::int64_t size : is_video ? video_tile_sizes(given.shape(), autoencoder.downscale)
                                          : tile_sizes(given.shape(), autoencoder.downscale)) {
    ctx.warn("there is no room to decode this as a whole, so it is decoded in tiles of " +
             std::to_string(size) +
             " pixels. The picture differs a little from what it would be otherwise, and is not "
             "kept for later runs. " +
             last);
    last = blocks::no_room(
        [&] {
          return is_video ? decoded_frames_in_tiles(ctx, value, latent, even_tiles(size), output)
                          : decode_in_tiles(ctx, value, latent, size, overlap_of(size));
        },
        made);
    if (!last.empty()) continue;
    ctx.do_not_cache();
    ctx[image] = made;
    return;
  }
  throw Error(HEDDLE_OUT_OF_MEMORY, last);
}

void VaeDecode::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  const std::optional<Value> value = question[vae];
  if (!shape || !value) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder) return;
  if (codes_clips(*value)) {
    infer_decoded_clips(question, image, *value, *shape, *autoencoder, published_tiling(*value));
    return;
  }
  if (const auto frames = whole_video_shape(*shape, *value, *autoencoder)) {
    check_channels((*shape)[1], *autoencoder);
    question.out(image, "", HEDDLE_F32, *frames);
    if (decodes_pieces(*value, *shape))
      tell_decoded_pieces(question, *value, *shape, *autoencoder);
    else
      infer_call(question, value->field("decoder"), {"z", HEDDLE_F32, *shape}, *frames);
    const std::vector<std::int64_t> tiles = video_tile_sizes(*shape, autoencoder->downscale);
    if (!tiles.empty() && (*shape)[2] > 1)
      tell_least_decoded_tile(question, *value, *shape, *autoencoder, even_tiles(tiles.back()));
    return;
  }
  if (is_of_frames(*shape) && (*shape)[2] == 1) shape->erase(shape->begin() + 2);
  if (shape->size() < 4 || shape->size() > 5) return;
  check_channels((*shape)[1], *autoencoder);  // before anything runs
  if (is_of_frames(*shape)) {
    question.out(image, "", HEDDLE_F32, frames_shape(*shape, *value, *autoencoder));
    tell_decoded_frames(question, *value, *shape, *autoencoder);
    const std::vector<std::int64_t> tiles = video_tile_sizes(*shape, autoencoder->downscale);
    if (!tiles.empty())
      tell_least_decoded_tile(question, *value, *shape, *autoencoder, even_tiles(tiles.back()));
    return;
  }
  const std::int64_t factor = autoencoder->downscale;
  const Shape picture{(*shape)[0], checked_product({(*shape)[2], factor}, "the height"),
                      checked_product({(*shape)[3], factor}, "the width"), autoencoder->colours};
  question.out(image, "", HEDDLE_F32, picture);
  infer_call(question, value->field("decoder"), {"z", HEDDLE_F32, *shape}, picture);
  const std::vector<std::int64_t> sizes = tile_sizes(*shape, factor);
  if (!sizes.empty())
    tell_least_tiles(question, value->field("decoder"), *shape, *autoencoder, sizes.back());
}

void VaeEncode::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  const Tensor picture = covered_by_cells(ctx, ctx[pixels], autoencoder);
  const Tensor mean =
      codes_clips(value) ? encoded_clips(ctx, value, picture, autoencoder, published_tiling(value))
      : is_video(picture.size(0), value) ? encoded_frames(ctx, value, picture, autoencoder)
                                         : mean_of_pictures(ctx, value, picture, autoencoder);
  ctx[latent] = latent_of(ctx, mean, autoencoder).value();
}

void VaeEncode::infer(Infer& question) {
  const auto shape = question.shape(pixels);
  const std::optional<Value> value = question[vae];
  if (!shape || shape->size() != 4 || !value) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder || autoencoder->channels == 0) return;
  const std::int64_t factor = autoencoder->downscale;
  const std::int64_t rows = (*shape)[1] / factor, columns = (*shape)[2] / factor;
  if (rows == 0 || columns == 0) return;
  if (codes_clips(*value)) {
    infer_encoded_clips(question, latent, *value, *shape, *autoencoder, published_tiling(*value));
    return;
  }
  if (is_video((*shape)[0], *value)) {
    const Shape frames = latent_frames_shape(*shape, *value, *autoencoder);
    question.out(latent, "samples", HEDDLE_F32, frames);
    tell_encoded_frames(question, *value, frames, *autoencoder);
    return;
  }
  const Shape samples = codes_whole_videos(value->field("encoder"), value->has("encoder_chunks"))
                            ? latent_frames_shape(*shape, *value, *autoencoder)
                            : Shape{(*shape)[0], autoencoder->channels, rows, columns};
  question.out(latent, "samples", HEDDLE_F32, samples);
  const Shape picture{(*shape)[0], rows * factor, columns * factor, autoencoder->colours};
  if (encodes_pieces(*value, picture[0]))
    tell_encoded_pieces(question, *value, picture, *autoencoder);
  else
    infer_call(question, value->field("encoder"), {"image", HEDDLE_F32, picture}, samples);
}

}  // namespace heddle::vae
