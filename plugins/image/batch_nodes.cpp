#include "plugins/image/batch_nodes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/picture_list.h"

namespace heddle::image {
namespace {

// All of them one after another, in the size and with the channels of `e`; a channel that is
// missing is opaque.
void put_in_batch(const std::vector<Pixels>& all, const Canvas& to) {
  const std::int64_t channels = to.extent().channels;
  std::int64_t at = 0;
  for (const Pixels& one : all)
    for (std::int64_t i = 0; i < one.extent().count; ++i, ++at)
      for (std::int64_t y = 0; y < to.extent().height; ++y)
        for (std::int64_t x = 0; x < to.extent().width; ++x)
          for (std::int64_t c = 0; c < channels; ++c)
            to.at(at, y, x)[c] = c < one.extent().channels ? one.at(i, y, x)[c] : 1.0f;
}

// The size of what is put together.
Extent batched(Context& ctx, std::vector<Pixels>& all) {
  Extent e = all.front().extent();
  e.count = 0;
  for (Pixels& one : all) {
    one.resize(ctx, e.size(), "bilinear", true);
    e.channels = std::max(e.channels, one.extent().channels);
    e.count = checked_sum({e.count, one.extent().count}, "the batch");
  }
  return e;
}

struct Tile {
  std::int64_t left, top, right, bottom;
};

// Where tiles of this size lie in a picture. The step is at least a quarter of a tile, and a pixel.
std::vector<Tile> tiles_of(const blocks::GridSize& picture, const blocks::GridSize& tile,
                           std::int64_t overlap) {
  const auto step = [&](std::int64_t side) {
    const double wanted = std::max(double(side) * 0.25, double(side - overlap));
    return std::max<std::int64_t>(1, blocks::rounded(wanted));
  };
  std::vector<Tile> tiles;
  for (std::int64_t y = 0; y < picture.height; y += step(tile.height)) {
    const std::int64_t bottom = std::min(y + tile.height, picture.height),
                       top = std::max<std::int64_t>(0, bottom - tile.height);
    for (std::int64_t x = 0; x < picture.width; x += step(tile.width)) {
      const std::int64_t right = std::min(x + tile.width, picture.width);
      tiles.push_back({std::max<std::int64_t>(0, right - tile.width), top, right, bottom});
      if (right >= picture.width) break;
    }
    if (bottom >= picture.height) break;
  }
  return tiles;
}

// torch.linspace(0, 1, count), then the weight of a cell: half a sine wave, above 0.
std::vector<float> fading(std::int64_t count) {
  std::vector<float> weights;
  const float step = count > 1 ? 1.0f / float(count - 1) : 0.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    // PyTorch goes from both ends to the middle.
    const float at = count == 1      ? 0.0f
                     : i < count / 2 ? step * float(i)
                                     : 1.0f - step * float(count - 1 - i);
    weights.push_back(std::max(std::sin(float(std::numbers::pi) * at), 1e-5f));
  }
  return weights;
}

void check_tile(const Extent& tile, const Extent& first) {
  if (tile.count != first.count || tile.channels != first.channels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image_list: its tiles differ in their batches or channels. Give tiles of one "
                "picture.");
}

}  // namespace

void BatchImagesNode::execute(Context& ctx) {
  std::vector<Pixels> all;
  for (const blocks::GrownInput& input : blocks::grown_inputs(ctx, images.port))
    all.push_back(Pixels::image(ctx, input.value.as<Tensor>(), input.name.c_str()));
  const Canvas to = Canvas::image(ctx, batched(ctx, all));
  put_in_batch(all, to);
  ctx[out] = to.tensor();
}

void BatchMasksNode::execute(Context& ctx) {
  std::vector<Pixels> all;
  for (const blocks::GrownInput& input : blocks::grown_inputs(ctx, masks.port))
    all.push_back(Pixels::mask(ctx, input.value.as<Tensor>(), input.name.c_str()));
  const Canvas to = Canvas::mask(ctx, batched(ctx, all));
  put_in_batch(all, to);
  ctx[out] = to.tensor();
}

void RebatchImages::execute(Context& ctx) {
  const std::vector<Tensor> singles = single_pictures(ctx[images], "images");
  const auto size = std::size_t(ctx[batch_size]);
  std::vector<Value> batches;
  for (std::size_t begin = 0; begin < singles.size(); begin += size) {
    const std::size_t end = std::min(singles.size(), begin + size);
    Extent e = image_extent(singles[begin].shape(), "images");
    e.count = std::int64_t(end - begin);
    const Canvas to = Canvas::image(ctx, e);
    for (std::size_t i = begin; i < end; ++i) {
      const Pixels one = Pixels::image(ctx, singles[i], "images");
      if (one.extent().picture() != e.picture() || one.extent().size() != e.size())
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    "images: pictures of different sizes make no batch. Resize them first.");
      std::copy_n(one.row(0, 0), e.picture(), to.row(std::int64_t(i - begin), 0));
    }
    batches.push_back(value_of(to.tensor()));
  }
  ctx[out] = list_of(batches);
}

void SplitImageToTileList::execute(Context& ctx) {
  const Tensor whole = ctx[image];
  const Extent e = image_extent(whole.shape(), "image");
  std::vector<Value> tiles;
  for (const Tile& tile : tiles_of(e.size(), {ctx[tile_height], ctx[tile_width]}, ctx[overlap]))
    tiles.push_back(
        value_of(whole.slice(1, tile.top, tile.bottom).slice(2, tile.left, tile.right)));
  ctx[out] = list_of(tiles);
}

void ImageMergeTileList::execute(Context& ctx) {
  const Value list = ctx[image_list];
  if (list.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image_list: it is empty. Give at least one tile.");
  const Extent first = image_extent(list.item(0).as<Tensor>().shape(), "image_list");
  const std::int64_t covered = ctx[overlap];
  Extent e = first;
  e.height = ctx[final_height];
  e.width = ctx[final_width];
  const std::vector<Tile> tiles = tiles_of(e.size(), first.size(), covered);
  const Canvas to = Canvas::image(ctx, e);
  to.fill(0);
  HostMemory memory(ctx);
  std::pmr::vector<float> weights(std::size_t(e.height * e.width), 0.0f, &memory);
  const std::vector<float> down = fading(first.height), across = fading(first.width);
  for (std::size_t t = 0; t < tiles.size() && t < list.count(); ++t) {
    check_cancelled(ctx);
    const Pixels tile = Pixels::image(ctx, list.item(std::uint32_t(t)).as<Tensor>(), "image_list");
    check_tile(tile.extent(), first);
    const auto [left, top, right, bottom] = tiles[t];
    const std::int64_t rows = std::min(bottom - top, tile.extent().height),
                       columns = std::min(right - left, tile.extent().width);
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        const float weight = covered > 0 ? down[std::size_t(y)] * across[std::size_t(x)] : 1.0f;
        weights[std::size_t((top + y) * e.width + left + x)] += weight;
        for (std::int64_t i = 0; i < e.count; ++i)
          for (std::int64_t c = 0; c < e.channels; ++c)
            to.at(i, top + y, left + x)[c] += tile.at(i, y, x)[c] * weight;
      }
  }
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x)
        for (std::int64_t c = 0; c < e.channels; ++c) {
          const float weight = weights[std::size_t(y * e.width + x)];
          to.at(i, y, x)[c] /= weight == 0 ? 1.0f : weight;
        }
  ctx[out] = to.tensor();
}

void MergeImageLists::execute(Context& ctx) {
  std::vector<Value> singles;
  for (const Tensor& one : single_pictures(ctx[images], "images")) singles.push_back(value_of(one));
  ctx[out] = list_of(singles);
}

}  // namespace heddle::image
