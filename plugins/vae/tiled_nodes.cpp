#include "plugins/vae/tiled_nodes.h"

#include <algorithm>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/least_cost.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/h3_clips.h"
#include "plugins/blocks/tiles.h"
#include "plugins/vae/video_chunks.h"
#include "plugins/vae/video_tiles.h"
#include "plugins/vae/whole_videos.h"

namespace heddle::vae {
namespace {

using blocks::Tile;
using blocks::TiledWork;
using blocks::Tiling;

constexpr std::int64_t kLeastTilePerOverlap = 4;

// Tall, wide and square tiles, added in this order.
TiledWork decoding(const Shape& samples, const Autoencoder& vae, std::int64_t tile_size,
                   std::int64_t overlap) {
  const std::int64_t factor = vae.downscale;
  const std::int64_t kept = std::min(overlap, tile_size / kLeastTilePerOverlap) / factor;
  // Half a tile has a cell at least, whatever the autoencoder's cells.
  const std::int64_t tile = std::max<std::int64_t>(tile_size / factor, 2);
  const blocks::GridSize size{checked_product({samples[2], factor}, "the height"),
                              checked_product({samples[3], factor}, "the width")};
  return {{samples[2], samples[3]},
          {1, size, vae.colours},
          {1, factor},
          {{2 * tile, tile / 2, kept}, {tile / 2, 2 * tile, kept}, {tile, tile, kept}}};
}

// Square, wide and tall tiles of the part that whole cells cover.
TiledWork encoding(const blocks::GridSize& picture, const Autoencoder& vae, std::int64_t tile_size,
                   std::int64_t overlap) {
  return {picture,
          {vae.channels, {vae.cells(picture.height), vae.cells(picture.width)}, 1},
          {vae.downscale, 1},
          {{tile_size, tile_size, overlap},
           {tile_size / 2, tile_size * 2, overlap},
           {tile_size * 2, tile_size / 2, overlap}}};
}

Tensor part_of(const Tensor& whole, std::int64_t item, const Tile& tile, std::uint32_t row_axis) {
  return whole.slice(0, item, item + 1)
      .slice(int(row_axis), tile.top, tile.top + tile.height)
      .slice(int(row_axis) + 1, tile.left, tile.left + tile.width);
}

std::int64_t numbers_of(const TiledWork& work) {
  return checked_product(
      {work.out.outer, work.out.size.height, work.out.size.width, work.out.inner}, "the picture");
}

// Puts the items of a batch together. `call` gives what the model makes of a tile of an item, a
// tensor whose rows are its axis `row_axis`.
template <class Call>
void put_together(Context& ctx, const TiledWork& work, std::int64_t items, int row_axis,
                  Call&& call, float* out) {
  HostMemory memory(ctx);
  std::pmr::vector<float> made(&memory);
  const double all = double(items) * double(tile_count(work));
  double done = 0;
  for (std::int64_t item = 0; item < items; ++item) {
    const blocks::MakeTile make = [&](const Tile& tile) -> blocks::MadeTile {
      if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      const Tensor result = call(item, tile);
      made.resize(std::size_t(result.count()));
      read_to<float>(ctx, result, made);
      ctx.progress(++done / all, "tiles");
      return {made.data(), {result.size(row_axis), result.size(row_axis + 1)}};
    };
    blocks::mean_of_tiles(work, make, out + item * numbers_of(work), memory);
  }
}

// What goes in, and what comes out.
std::int64_t numbers_of_tile(const TiledWork& work, const Shape& in, std::int64_t height,
                             std::int64_t width) {
  const std::int64_t out = checked_product(
      {work.ratio.of(height), work.ratio.of(width), work.out.outer, work.out.inner}, "a tile");
  return checked_sum({count_of(in), out}, "a tile");
}

// The calls of a run: `shape` gives the input of a tile.
template <class ShapeOf>
void infer_calls(Infer& question, const Value& model, const char* input, const TiledWork& work,
                 std::int64_t items, ShapeOf&& shape) {
  if (!model.is(HEDDLE_KIND_MODEL)) return;
  std::int64_t most = 0;  // numbers of a tile, in and out
  for (std::int64_t item = 0; item < items; ++item)
    for (const Tiling& tiling : work.tilings)
      for (const Tile& tile : tiles_of(work.in, tiling)) {
        question.call(model, {{.constants = {{input, HEDDLE_F32, shape(tile)}}, .steps = {}}});
        most = std::max(most, numbers_of_tile(work, shape(tile), tile.height, tile.width));
      }
  const double numbers = double(work.tilings.size()) * double(items) * double(numbers_of(work));
  const auto bytes = checked_cast<std::uint64_t>(double(sizeof(float)) * double(most), "bytes");
  question.cost(4 * numbers, 4 * double(sizeof(float)) * numbers, bytes);
  question.host_scratch(tile_sum_bytes(work) + 2 * bytes);
}

bool has_steps(const TiledWork& work) {
  try {
    tile_count(work);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Tensor decode_in_tiles(Context& ctx, const Value& vae, const Value& latent, std::int64_t tile_size,
                       std::int64_t overlap) {
  const Autoencoder autoencoder(vae);
  const Tensor latents = samples_of(latent, autoencoder);
  const TiledWork work = decoding(latents.shape(), autoencoder, tile_size, overlap);
  const Value decoder = model_of(vae, "decoder");
  const std::int64_t items = latents.size(0);
  const Tensor pictures =
      ctx.make_host({items, work.out.size.height, work.out.size.width, work.out.inner}, HEDDLE_F32);
  const auto decode = [&](std::int64_t item, const Tile& tile) {
    const Tensor z = raw_of(ctx, part_of(latents, item, tile, 2), latent, autoencoder);
    return decoded(ctx, decoder, z);
  };
  float* const numbers = pictures.data<float>();
  put_together(ctx, work, items, 1, decode, numbers);
  for (std::int64_t i = 0; i < pictures.count(); ++i)
    numbers[i] = std::clamp(numbers[i] * 0.5f + 0.5f, 0.0f, 1.0f);
  return pictures;
}

void tell_least_tiles(Infer& question, const Value& decoder, const Shape& latents,
                      const Autoencoder& autoencoder, std::int64_t tile_size) {
  if (!decoder.is(HEDDLE_KIND_MODEL)) return;
  const TiledWork work = decoding(latents, autoencoder, tile_size, 0);
  std::int64_t most = 0;
  for (const Tiling& tiling : work.tilings) {
    const Shape z{1, latents[1], std::min(tiling.height, latents[2]),
                  std::min(tiling.width, latents[3])};
    question.least_call(decoder, {{.constants = {{"z", HEDDLE_F32, z}}, .steps = {}}});
    most = std::max(most, numbers_of_tile(work, z, z[2], z[3]));
  }
  tell_least_scratch(question, sizeof(float) * std::uint64_t(most));
}

void VaeDecodeTiled::execute(Context& ctx) {
  if (codes_clips(ctx[vae])) {
    ctx[image] = decoded_clips(ctx, ctx[vae], ctx[samples], {ctx[tile_size], ctx[overlap]},
                               ctx[image].index);
    return;
  }
  const Value value = ctx[vae], latent = without_frames(ctx[samples], value);
  const Tensor given = latent.get<Tensor>("samples", {});
  ctx[image] = given && is_of_frames(given.shape())
                   ? decoded_frames_in_tiles(
                         ctx, value, latent,
                         {ctx[tile_size], ctx[overlap], ctx[temporal_size], ctx[temporal_overlap]},
                         ctx[image].index)
                   : decode_in_tiles(ctx, value, latent, ctx[tile_size], ctx[overlap]);
}

void VaeDecodeTiled::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  const std::optional<Value> value = question[vae];
  const std::optional<std::int64_t> size = question[tile_size], shared = question[overlap];
  if (!shape || !value || !size || !shared) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder) return;
  if (codes_clips(*value)) {
    infer_decoded_clips(question, image, *value, *shape, *autoencoder, {*size, *shared});
    return;
  }
  if (is_of_frames(*shape) && (*shape)[2] == 1) shape->erase(shape->begin() + 2);
  const std::optional<std::int64_t> length = question[temporal_size],
                                    length_shared = question[temporal_overlap];
  if (is_of_frames(*shape) && length && length_shared) {
    question.out(image, "", HEDDLE_F32, frames_shape(*shape, *value, *autoencoder));
    tell_decoded_tiles(question, *value, *shape, *autoencoder,
                       {*size, *shared, *length, *length_shared});
  }
  if (shape->size() != 4) return;
  const TiledWork work = decoding(*shape, *autoencoder, *size, *shared);
  question.out(image, "", HEDDLE_F32,
               {(*shape)[0], work.out.size.height, work.out.size.width, work.out.inner});
  infer_calls(question, value->field("decoder"), "z", work, (*shape)[0], [&](const Tile& tile) {
    return Shape{1, (*shape)[1], tile.height, tile.width};
  });
}

void VaeEncodeTiled::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  if (autoencoder.channels < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: it does not say how many channels its latents have. Load another one.");
  const Tensor picture = covered_by_cells(ctx, ctx[pixels], autoencoder);
  if (codes_clips(value)) {
    const Tensor mean =
        encoded_clips(ctx, value, picture, autoencoder, {ctx[tile_size], ctx[overlap]});
    ctx[latent] = latent_of(ctx, mean, autoencoder).value();
    return;
  }
  const TiledWork work =
      encoding({picture.size(1), picture.size(2)}, autoencoder, ctx[tile_size], ctx[overlap]);
  const Value encoder = model_of(value, "encoder");
  const std::int64_t items = picture.size(0);
  if (codes_whole_videos(encoder, value.has("encoder_chunks")))
    throw Error(HEDDLE_UNSUPPORTED,
                "vae: this autoencoder encodes videos only as a whole. Take VAEEncode.");
  if (is_video(items, value)) {
    const Tensor frames = encoded_frames_in_tiles(
        ctx, value, picture, autoencoder,
        {ctx[tile_size], ctx[overlap], ctx[temporal_size], ctx[temporal_overlap]});
    ctx[latent] = latent_of(ctx, frames, autoencoder).value();
    return;
  }
  const Shape shape{items, autoencoder.channels, work.out.size.height, work.out.size.width};
  const Tensor means = ctx.make_host(shape, HEDDLE_F32);
  const auto encode = [&](std::int64_t item, const Tile& tile) {
    return mean_of(ctx, encoder, part_of(picture, item, tile, 1));
  };
  put_together(ctx, work, items, 2, encode, means.data<float>());
  const Tensor there = ctx.upload(shape, HEDDLE_F32, means.data<float>());
  ctx[latent] = latent_of(ctx, there, autoencoder).value();
}

void VaeEncodeTiled::infer(Infer& question) {
  const auto shape = question.shape(pixels);
  const std::optional<Value> value = question[vae];
  const std::optional<std::int64_t> size = question[tile_size], shared = question[overlap];
  if (!shape || shape->size() != 4 || !value || !size || !shared) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder || autoencoder->channels < 1 ||
      codes_whole_videos(value->field("encoder"), value->has("encoder_chunks")))
    return;  // the run says why
  const std::int64_t factor = autoencoder->downscale;
  const std::int64_t rows = autoencoder->cells((*shape)[1]);
  const std::int64_t columns = autoencoder->cells((*shape)[2]);
  if (rows == 0 || columns == 0) return;
  if (codes_clips(*value)) {
    infer_encoded_clips(question, latent, *value, *shape, *autoencoder, {*size, *shared});
    return;
  }
  const std::optional<std::int64_t> length = question[temporal_size],
                                    length_shared = question[temporal_overlap];
  if (is_video((*shape)[0], *value)) {
    const Shape covered{(*shape)[0], rows * factor, columns * factor, autoencoder->colours};
    question.out(latent, "samples", HEDDLE_F32, latent_frames_shape(covered, *value, *autoencoder));
    if (length && length_shared)
      tell_encoded_tiles(question, *value, covered, *autoencoder,
                         {*size, *shared, *length, *length_shared});
    return;
  }
  question.out(latent, "samples", HEDDLE_F32, {(*shape)[0], autoencoder->channels, rows, columns});
  const TiledWork work = encoding({rows * factor, columns * factor}, *autoencoder, *size, *shared);
  if (!has_steps(work)) return;  // the run says why
  infer_calls(question, value->field("encoder"), "image", work, (*shape)[0], [&](const Tile& tile) {
    return Shape{1, tile.height, tile.width, autoencoder->colours};
  });
}

}  // namespace heddle::vae
