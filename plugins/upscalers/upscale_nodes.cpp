#include "plugins/upscalers/upscale_nodes.h"

#include <algorithm>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/least_cost.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/no_room.h"
#include "plugins/blocks/tiles.h"
#include "upscaler_blocks.h"
#include "upscaler_shape.h"

namespace heddle::upscalers {
namespace {

using blocks::Tile;
using blocks::TiledWork;

// Of what goes in, in pixels: ComfyUI's.
constexpr std::int64_t kTile = 512, kOverlap = 32, kLeastTile = 128;

struct Upscaler {
  Value model;
  UpscalerShape shape;
};

Upscaler upscaler_of(const Value& value) {
  const Value model = value.field("model");
  if (!model.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "upscale_model: it holds no model. Link an UpscaleModelLoader.");
  return {model, shape_of(model_settings(model))};
}

void check_picture(const Shape& picture, const UpscalerShape& shape) {
  if (picture.size() != 4 || picture[3] < shape.in_channels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: the upscaler takes pictures (batch, height, width, channels) of " +
                    std::to_string(shape.in_channels) + " channels or more");
}

// The least side that the model takes.
std::int64_t taken(std::int64_t side, const UpscalerShape& shape) {
  const std::int64_t least = std::max(side, shape.minimum);
  return (least + shape.multiple - 1) / shape.multiple * shape.multiple;
}

// Pixels as the model takes them, with a mirrored edge below and to the right where it wants
// larger sides.
Tensor padded(Context& ctx, const Tensor& pixels, const UpscalerShape& shape) {
  return mirrored_to(ctx, pixels, taken(pixels.size(1), shape), taken(pixels.size(2), shape));
}

// What the model makes of a part of the pictures: (1, s H, s W, C), 0 to 1.
Tensor upscaled(Context& ctx, const Upscaler& upscaler, const Tensor& pixels) {
  const Value made =
      call_model(ctx, upscaler.model,
                 Record().set("image", value_of(padded(ctx, pixels, upscaler.shape))).value());
  const std::int64_t scale = upscaler.shape.scale;
  const Tensor part = made.get<Tensor>("image", {})
                          .slice(1, 0, pixels.size(1) * scale)
                          .slice(2, 0, pixels.size(2) * scale);
  return ops::scale_clamp(ctx, part, {1, 0, 0, 1});
}

// The sums of tiles of one item.
TiledWork work_of(const Shape& picture, const UpscalerShape& shape, std::int64_t tile) {
  const blocks::GridSize size{checked_product({picture[1], shape.scale}, "the height"),
                              checked_product({picture[2], shape.scale}, "the width")};
  return {{picture[1], picture[2]},
          {1, size, shape.out_channels},
          {1, shape.scale},
          {{tile, tile, kOverlap}}};
}

bool is_whole(const Shape& picture, std::int64_t tile) {
  return picture[1] <= tile && picture[2] <= tile;
}

Shape shape_made(const Shape& picture, const UpscalerShape& shape) {
  const TiledWork work = work_of(picture, shape, kTile);
  return {picture[0], work.out.size.height, work.out.size.width, work.out.inner};
}

// Items one after another, where each fits into a tile. They stay on the device.
Tensor upscale_whole(Context& ctx, const Upscaler& upscaler, const Tensor& pictures) {
  const std::int64_t items = pictures.size(0);
  if (items == 1) return upscaled(ctx, upscaler, pictures);
  const Tensor all = ctx.make(shape_made(pictures.shape(), upscaler.shape), HEDDLE_F32);
  for (std::int64_t i = 0; i < items; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    ops::copy_into(ctx, upscaled(ctx, upscaler, pictures.slice(0, i, i + 1)),
                   all.slice(0, i, i + 1));
    ctx.progress(double(i + 1) / double(items), "pictures");
  }
  return all;
}

// Put together in host memory.
Tensor upscale_in_tiles(Context& ctx, const Upscaler& upscaler, const Tensor& pictures,
                        std::int64_t tile_size) {
  const Shape& picture = pictures.shape();
  const TiledWork work = work_of(picture, upscaler.shape, tile_size);
  const Shape shape = shape_made(picture, upscaler.shape);
  const Tensor all = ctx.make_host(shape, HEDDLE_F32);
  HostMemory memory(ctx);
  std::pmr::vector<float> made(&memory);
  const double count = double(picture[0]) * double(blocks::tile_count(work));
  double done = 0;
  for (std::int64_t item = 0; item < picture[0]; ++item) {
    const auto make = [&](const Tile& tile) -> blocks::MadeTile {
      if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      const Tensor part = pictures.slice(0, item, item + 1)
                              .slice(1, tile.top, tile.top + tile.height)
                              .slice(2, tile.left, tile.left + tile.width);
      const Tensor result = upscaled(ctx, upscaler, part);
      made.resize(std::size_t(result.count()));
      read_to<float>(ctx, result, made);
      ctx.progress(++done / count, "tiles");
      return {made.data(), {result.size(1), result.size(2)}};
    };
    blocks::mean_of_tiles(work, make, all.data<float>() + item * (all.count() / picture[0]),
                          memory);
  }
  return all;
}

Tensor upscale(Context& ctx, const Upscaler& upscaler, const Tensor& pictures, std::int64_t tile) {
  return is_whole(pictures.shape(), tile) ? upscale_whole(ctx, upscaler, pictures)
                                          : upscale_in_tiles(ctx, upscaler, pictures, tile);
}

Shape taken_shape(const Tile& tile, const UpscalerShape& shape) {
  return {1, taken(tile.height, shape), taken(tile.width, shape), shape.in_channels};
}

}  // namespace

void ImageUpscaleWithModel::execute(Context& ctx) {
  const Upscaler upscaler = upscaler_of(ctx[upscale_model]);
  const Tensor given = ctx[image];
  check_picture(given.shape(), upscaler.shape);
  const Tensor pictures = given.slice(3, 0, upscaler.shape.in_channels);
  Tensor made;
  std::int64_t tile = kTile;
  std::string why = blocks::no_room([&] { return upscale(ctx, upscaler, pictures, tile); }, made);
  while (!why.empty()) {
    tile /= 2;
    if (tile < kLeastTile) throw Error(HEDDLE_OUT_OF_MEMORY, why);
    ctx.warn("there is no room to upscale tiles of " + std::to_string(2 * tile) +
             " pixels, so they are made of " + std::to_string(tile) +
             ". The picture differs a little from what it would be otherwise, and is not kept for "
             "later runs. " +
             why);
    ctx.do_not_cache();
    why = blocks::no_room([&] { return upscale(ctx, upscaler, pictures, tile); }, made);
  }
  ctx[out] = made;
}

void ImageUpscaleWithModel::infer(Infer& question) {
  const auto shape = question.shape(image);
  const std::optional<Value> value = question[upscale_model];
  if (!shape || shape->size() != 4 || !value || !value->field("model").is(HEDDLE_KIND_MODEL))
    return;
  const Upscaler upscaler = upscaler_of(*value);
  check_picture(*shape, upscaler.shape);  // before anything runs
  const Shape result = shape_made(*shape, upscaler.shape);
  question.out(out, "", HEDDLE_F32, result);
  const auto call_of = [&](const Tile& tile) {
    return Infer::Set{.constants = {{"image", HEDDLE_F32, taken_shape(tile, upscaler.shape)}},
                      .steps = {}};
  };
  const TiledWork work = work_of(*shape, upscaler.shape, kTile);
  const std::vector<Tile> tiles = blocks::tiles_of(work.in, work.tilings.front());
  for (std::int64_t item = 0; item < (*shape)[0]; ++item)
    for (const Tile& tile : tiles) question.call(upscaler.model, {call_of(tile)});
  const auto made_of = [&](const Tile& tile) {
    const std::int64_t numbers =
        checked_product({tile.height, tile.width, upscaler.shape.scale, upscaler.shape.scale,
                         upscaler.shape.out_channels},
                        "a tile");
    return checked_cast<std::uint64_t>(double(sizeof(float)) * double(numbers), "bytes");
  };
  // The largest of the smallest tiles.
  if (!is_whole(*shape, kLeastTile)) {
    const Tile least{0, 0, std::min(kLeastTile, (*shape)[1]), std::min(kLeastTile, (*shape)[2])};
    question.least_call(upscaler.model, {call_of(least)});
    tell_least_scratch(question, made_of(least));
  }
  const std::int64_t numbers =
      checked_product({result[0], result[1], result[2], result[3]}, "the picture");
  const std::uint64_t bytes = made_of(tiles.front());
  question.cost(2 * double(numbers), 2 * double(sizeof(float)) * double(numbers), bytes);
  if (!is_whole(*shape, kTile)) question.host_scratch(blocks::tile_sum_bytes(work) + 2 * bytes);
}

}  // namespace heddle::upscalers
