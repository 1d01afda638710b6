#include "plugins/image/box_nodes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "plugins/image/boxes.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

using blocks::GridSize;

struct CropEdges {
  std::int64_t left, top, right, bottom;
  bool is_empty() const { return right <= left || bottom <= top; }
};

std::int64_t whole_pixels(double place) {
  constexpr double kMost = 1e9;
  return std::isfinite(place) ? std::int64_t(std::clamp(place, -kMost, kMost)) : 0;
}

// Around all boxes, within the picture; where nothing is left, a square in its upper middle, where
// faces are.
std::optional<CropEdges> edges_of(const std::vector<BoundingBox>& boxes, std::int64_t padding,
                                  const GridSize& size) {
  CropEdges e{std::int64_t{1} << 40, std::int64_t{1} << 40, -(std::int64_t{1} << 40),
              -(std::int64_t{1} << 40)};
  for (const BoundingBox& box : boxes) {
    e.left = std::min(e.left, whole_pixels(box.x));
    e.top = std::min(e.top, whole_pixels(box.y));
    e.right = std::max(e.right, whole_pixels(box.right()));
    e.bottom = std::max(e.bottom, whole_pixels(box.bottom()));
  }
  e = {std::max<std::int64_t>(0, e.left - padding), std::max<std::int64_t>(0, e.top - padding),
       std::min(size.width, e.right + padding), std::min(size.height, e.bottom + padding)};
  if (!e.is_empty()) return e;
  const auto side = std::int64_t(double(std::min(size.height, size.width)) * 0.3);
  e.left = std::max<std::int64_t>(0, (size.width - side) / 2);
  e.top = std::int64_t(double(size.height) * 0.1);
  e.right = std::min(size.width, e.left + side);
  e.bottom = std::min(size.height, e.top + side);
  return e.is_empty() ? std::nullopt : std::optional(e);
}

// The part of picture i, resized by areas, in the middle of `to`.
void put_crop(Context& ctx, const Tensor& picture, const std::optional<CropEdges>& e, bool keeps,
              const Canvas& to, std::int64_t n) {
  const Extent& whole = to.extent();
  std::fill_n(to.row(n, 0), whole.picture(), 0.0f);
  if (!e) return;
  Pixels part =
      Pixels::image(ctx, picture.slice(1, e->top, e->bottom).slice(2, e->left, e->right), "image");
  GridSize size = whole.size();
  if (keeps) {
    const double scale = std::min(double(size.width) / double(e->right - e->left),
                                  double(size.height) / double(e->bottom - e->top));
    size = {blocks::rounded(double(e->bottom - e->top) * scale),
            blocks::rounded(double(e->right - e->left) * scale)};
  }
  part.resize(ctx, size, "area");
  const std::int64_t left = (whole.width - size.width) / 2, top = (whole.height - size.height) / 2;
  for (std::int64_t y = 0; y < size.height; ++y)
    std::copy_n(part.row(0, y), part.extent().row(), to.at(n, top + y, left));
}

}  // namespace

void CropByBBoxes::execute(Context& ctx) {
  const Tensor pictures = ctx[image];
  const Extent e = image_extent(pictures.shape(), "image");
  const std::vector<std::vector<BoundingBox>> boxes = boxes_by_picture(ctx[bboxes], "bboxes");
  std::vector<std::int64_t> kept;
  const auto boxes_at = [&](std::int64_t i) -> const std::vector<BoundingBox>& {
    return boxes[std::min(std::size_t(i), boxes.size() - 1)];
  };
  for (std::int64_t i = 0; i < e.count && !boxes.empty(); ++i)
    if (!boxes_at(i).empty()) kept.push_back(i);
  if (kept.empty()) {
    ctx[out] = pictures;
    return;
  }
  const Canvas to = Canvas::image(
      ctx, {std::int64_t(kept.size()), ctx[output_height], ctx[output_width], e.channels});
  for (std::size_t n = 0; n < kept.size(); ++n)
    put_crop(ctx, pictures.slice(0, kept[n], kept[n] + 1),
             edges_of(boxes_at(kept[n]), ctx[padding], e.size()), ctx[keep_aspect] == "pad", to,
             std::int64_t(n));
  ctx[out] = to.tensor();
}

}  // namespace heddle::image
