#include <algorithm>
#include <cmath>
#include <utility>

#include "plugins/blocks/pixel_limit.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/layers.h"

namespace heddle::image {
namespace {

std::int64_t side_of(double length) {
  if (!(length <= double(kMostCanvas)))
    throw Error(HEDDLE_INVALID_ARGUMENT, "layers: a layer has a side of more than " +
                                             std::to_string(kMostCanvas) +
                                             " pixels. Make it smaller.");
  return std::max<std::int64_t>(1, std::int64_t(std::nearbyint(length)));
}

// As large, flipped and turned as it is placed.
LayerBitmap placed(const LayerBitmap& from, const Placement& p) {
  LayerBitmap made = p.flips_h || p.flips_v ? flipped(from, p.flips_h, p.flips_v) : from;
  const std::int64_t width = side_of(p.width), height = side_of(p.height);
  if (made.width != width || made.height != height) made = resized_bitmap(made, width, height);
  if (p.rotation != 0) made = rotated(made, -(p.rotation * 180 / M_PI));
  return made;
}

std::int64_t half_of(std::int64_t difference) {  // rounded down
  return (difference - (difference % 2 + 2) % 2) / 2;
}

LayerPixel linear_pixel(const std::uint8_t* rgba) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (std::size_t i = 0; i < 256; ++i) values[i] = srgb_to_linear(float(i) / 255.0f);
    return values;
  }();
  return {table[rgba[0]], table[rgba[1]], table[rgba[2]], float(rgba[3]) / 255.0f};
}

void draw_layer(Context& ctx, const LayerBitmap& bitmap, const Placement& p,
                const CanvasSize& canvas, std::pmr::vector<LayerPixel>& pixels) {
  const PlacedBounds bounds = placed_bounds(p);
  if (bounds.x >= double(canvas.width) || bounds.y >= double(canvas.height) ||
      bounds.x + bounds.width <= 0 || bounds.y + bounds.height <= 0)
    return;
  const LayerBitmap layer = placed(bitmap, p);
  const auto bx = std::int64_t(bounds.x), by = std::int64_t(bounds.y),
             bw = std::int64_t(bounds.width), bh = std::int64_t(bounds.height);
  // The bitmap lies in the middle of its bounds, from which rounding may part it.
  const std::int64_t left = bx + half_of(bw - layer.width), top = by + half_of(bh - layer.height);
  const LayerMode mode = layer_mode(p.mode);
  const auto opacity = float(std::clamp(p.opacity, 0.0, 1.0));
  for (std::int64_t y = std::max<std::int64_t>(by, 0); y < std::min(by + bh, canvas.height); ++y) {
    check_cancelled(ctx);
    for (std::int64_t x = std::max<std::int64_t>(bx, 0); x < std::min(bx + bw, canvas.width); ++x) {
      const bool is_inside =
          x >= left && x < left + layer.width && y >= top && y < top + layer.height;
      LayerPixel& below = pixels[std::size_t(y * canvas.width + x)];
      below =
          put_onto(mode, below,
                   is_inside ? linear_pixel(layer.at(x - left, y - top)) : LayerPixel{}, opacity);
    }
  }
}

}  // namespace

void draw_layers(Context& ctx, const std::vector<Layer>& layers, const Arrangement& arrangement,
                 std::pmr::vector<LayerPixel>& canvas) {
  const CanvasSize& size = arrangement.canvas;
  if (size.width > kMostCanvas || size.height > kMostCanvas ||
      std::uint64_t(size.width * size.height) > blocks::most_pixels())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "layers: a canvas of " + std::to_string(size.width) + " x " +
                    std::to_string(size.height) + " pixels is too large. Sides have at most " +
                    std::to_string(kMostCanvas) + " pixels, and HEDDLE_MOST_PIXELS limits all.");
  canvas.assign(std::size_t(size.width * size.height), LayerPixel{});
  if (arrangement.background[3] > 0) {
    LayerPixel colour = arrangement.background;
    const float opacity = std::exchange(colour[3], 1.0f);
    const LayerMode normal = layer_mode("normal");
    for (LayerPixel& pixel : canvas) pixel = put_onto(normal, pixel, colour, opacity);
  }
  for (const std::size_t i : arrangement.order)
    if (arrangement.placements[i].is_visible)
      draw_layer(ctx, layers[i].bitmap, arrangement.placements[i], size, canvas);
}

}  // namespace heddle::image
