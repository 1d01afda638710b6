#include "plugins/image/dataset_nodes.h"

#include <algorithm>
#include <bit>
#include <bitset>

#include "plugins/image/host_pixels.h"
#include "plugins/image/picture_list.h"

namespace heddle::image {
namespace {

using blocks::GridSize;

// The other side is cut to whole pixels, not rounded.
GridSize by_edge(const GridSize& from, std::int64_t edge, bool is_shorter) {
  const bool sets_width = is_shorter ? from.width < from.height : from.width > from.height;
  if (sets_width)
    return {std::int64_t(double(from.height) * (double(edge) / double(from.width))), edge};
  return {edge, std::int64_t(double(from.width) * (double(edge) / double(from.height)))};
}

template <class Node>
void resize_by_edge(Context& ctx, std::int64_t edge, bool is_shorter) {
  Pixels pixels = Pixels::image(ctx, ctx[Node::images], "images");
  pixels.resize(ctx, by_edge(pixels.extent().size(), edge, is_shorter), "lanczos");
  const Canvas to = Canvas::image(ctx, pixels.extent());
  to.copy(pixels);
  ctx[Node::out] = to.tensor();
}

template <class Node, class Edge>
void infer_by_edge(Infer& question, const Edge& edge, bool is_shorter) {
  auto e = extent_of_image(question, Node::images);
  const auto length = question[edge];
  if (!e || !length) return;
  const GridSize to = by_edge(e->size(), *length, is_shorter);
  if (to.height > 0 && to.width > 0)
    question.out(Node::out, "", HEDDLE_F32, {e->count, to.height, to.width, e->channels});
}

// The part of every picture that begins there.
Tensor cut(Context& ctx, const Pixels& from, std::int64_t left, std::int64_t top,
           const GridSize& size) {
  Extent e = from.extent();
  e.width = std::min(size.width, e.width);
  e.height = std::min(size.height, e.height);
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      std::transform(from.at(i, top + y, left), from.at(i, top + y, left) + e.row(), to.row(i, y),
                     through_a_byte);
  return to.tensor();
}

template <class Node>
void infer_cut(Infer& question) {
  const auto e = extent_of_image(question, Node::images);
  const auto w = question[Node::width], h = question[Node::height];
  if (e && w && h)
    question.out(Node::out, "", HEDDLE_F32,
                 {e->count, std::min(*h, e->height), std::min(*w, e->width), e->channels});
}

template <class Node, class Change>
void change_all(Context& ctx, Change change) {
  const Pixels from = Pixels::image(ctx, ctx[Node::images], "images");
  const Canvas to = Canvas::image(ctx, from.extent());
  std::transform(from.row(0, 0), from.row(0, 0) + to.size(), to.data(), change);
  ctx[Node::out] = to.tensor();
}

// Of 8 x 8 pixels: which are brighter than their mean. The grey is Pillow's of bytes.
std::bitset<64> look_of(Context& ctx, const Tensor& picture) {
  Pixels pixels = Pixels::image(ctx, picture, "images");
  pixels.resize(ctx, {8, 8}, "lanczos");
  const std::int64_t channels = pixels.extent().channels;
  unsigned greys[64], sum = 0;
  for (int i = 0; i < 64; ++i) {
    const float* pixel = pixels.row(0, 0) + i * channels;
    const auto byte = [&](int c) { return unsigned(pixel[channels < 3 ? 0 : c] * 255.0f + 0.5f); };
    greys[i] = channels < 3 ? byte(0)
                            : (byte(0) * 19595 + byte(1) * 38470 + byte(2) * 7471 + 0x8000) >> 16;
    sum += greys[i];
  }
  std::bitset<64> look;
  for (std::size_t i = 0; i < 64; ++i) look[i] = greys[i] * 64 > sum;
  return look;
}

}  // namespace

void ResizeImagesByShorterEdge::execute(Context& ctx) {
  resize_by_edge<ResizeImagesByShorterEdge>(ctx, ctx[shorter_edge], true);
}
void ResizeImagesByShorterEdge::infer(Infer& question) {
  infer_by_edge<ResizeImagesByShorterEdge>(question, shorter_edge, true);
}

void ResizeImagesByLongerEdge::execute(Context& ctx) {
  resize_by_edge<ResizeImagesByLongerEdge>(ctx, ctx[longer_edge], false);
}
void ResizeImagesByLongerEdge::infer(Infer& question) {
  infer_by_edge<ResizeImagesByLongerEdge>(question, longer_edge, false);
}

void CenterCropImages::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[images], "images");
  const GridSize size{ctx[height], ctx[width]};
  const auto middle = [](std::int64_t side, std::int64_t part) {
    return std::max<std::int64_t>(0, (side - part) / 2);
  };
  ctx[out] = cut(ctx, from, middle(from.extent().width, size.width),
                 middle(from.extent().height, size.height), size);
}
void CenterCropImages::infer(Infer& question) { infer_cut<CenterCropImages>(question); }

void RandomCropImages::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[images], "images");
  const GridSize size{ctx[height], ctx[width]};
  NumpyRandom random(ctx[seed]);
  const auto place = [&](std::int64_t side, std::int64_t part) {
    return std::int64_t(random.up_to(std::uint32_t(std::max<std::int64_t>(0, side - part))));
  };
  const std::int64_t left = place(from.extent().width, size.width),
                     top = place(from.extent().height, size.height);
  ctx[out] = cut(ctx, from, left, top, size);
}
void RandomCropImages::infer(Infer& question) { infer_cut<RandomCropImages>(question); }

void NormalizeImages::execute(Context& ctx) {
  const auto middle = float(ctx[mean]), width = float(ctx[deviation]);
  change_all<NormalizeImages>(ctx, [=](float x) { return (x - middle) / width; });
}
void NormalizeImages::infer(Infer& question) { infer_like(question, images, out); }

void AdjustBrightness::execute(Context& ctx) {
  const auto by = float(ctx[factor]);
  change_all<AdjustBrightness>(ctx, [=](float x) { return std::clamp(x * by, 0.0f, 1.0f); });
}
void AdjustBrightness::infer(Infer& question) { infer_like(question, images, out); }

void AdjustContrast::execute(Context& ctx) {
  const auto by = float(ctx[factor]);
  change_all<AdjustContrast>(
      ctx, [=](float x) { return std::clamp((x - 0.5f) * by + 0.5f, 0.0f, 1.0f); });
}
void AdjustContrast::infer(Infer& question) { infer_like(question, images, out); }

void ShuffleDataset::execute(Context& ctx) {
  const std::vector<Tensor> all = single_pictures(ctx[images], "images");
  std::vector<Value> shuffled;
  for (const std::size_t i : NumpyRandom(ctx[seed]).permutation(all.size()))
    shuffled.push_back(value_of(all[i]));
  ctx[out] = list_of(shuffled);
}

void ShuffleImageTextDataset::execute(Context& ctx) {
  const Value all = ctx[images], words = ctx[texts];
  if (words.count() < all.count())
    throw Error(HEDDLE_INVALID_ARGUMENT, "texts: there are " + std::to_string(words.count()) +
                                             ", and " + std::to_string(all.count()) +
                                             " images. Give a text for each.");
  std::vector<Value> pictures, captions;
  for (const std::size_t i : NumpyRandom(ctx[seed]).permutation(all.count())) {
    pictures.push_back(all.item(std::uint32_t(i)));
    captions.push_back(words.item(std::uint32_t(i)));
  }
  ctx[out] = list_of(pictures);
  ctx[texts_out] = list_of(captions);
}

void ImageDeduplication::execute(Context& ctx) {
  const double least = ctx[similarity_threshold];
  std::vector<std::bitset<64>> kept;
  std::vector<Value> pictures;
  for (const Tensor& picture : single_pictures(ctx[images], "images")) {
    check_cancelled(ctx);
    const std::bitset<64> look = look_of(ctx, picture);
    const bool is_known = std::ranges::any_of(kept, [&](const std::bitset<64>& other) {
      return 1.0 - double((look ^ other).count()) / 64.0 >= least;
    });
    if (is_known) continue;
    kept.push_back(look);
    pictures.push_back(value_of(picture));
  }
  ctx[out] = list_of(pictures);
}

void ImageGrid::execute(Context& ctx) {
  const std::vector<Tensor> all = single_pictures(ctx[images], "images");
  if (all.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT, "images: the list is empty. Give at least one picture.");
  const std::int64_t across = ctx[columns], gap = ctx[padding];
  const GridSize cell{ctx[cell_height], ctx[cell_width]};
  const std::int64_t down = (std::int64_t(all.size()) + across - 1) / across;
  const Canvas to = Canvas::image(
      ctx, {1, down * cell.height + (down - 1) * gap, across * cell.width + (across - 1) * gap, 3});
  to.fill(0);
  for (std::size_t n = 0; n < all.size(); ++n) {
    check_cancelled(ctx);
    Pixels picture = Pixels::image(ctx, all[n], "images");
    picture.resize(ctx, cell, "lanczos");
    const std::int64_t channels = picture.extent().channels,
                       top = std::int64_t(n) / across * (cell.height + gap),
                       left = std::int64_t(n) % across * (cell.width + gap);
    for (std::int64_t y = 0; y < cell.height; ++y)
      for (std::int64_t x = 0; x < cell.width; ++x)
        for (std::int64_t c = 0; c < 3; ++c)
          to.at(0, top + y, left + x)[c] = picture.at(0, y, x)[channels < 3 ? 0 : c];
  }
  ctx[out] = to.tensor();
}

}  // namespace heddle::image
