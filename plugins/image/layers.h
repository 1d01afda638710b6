// The layers of a LAYERS value, and what an editor says of them. One call's thread.
#pragma once

#include <heddle/host_memory.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plugins/image/layer_bitmap.h"
#include "plugins/image/layer_blend.h"

namespace heddle::image {

inline constexpr std::int64_t kMostCanvas = 16384;  // pixels of a side

// Where and how a layer is put onto the canvas; sizes in pixels, the angle in radians, clockwise.
struct Placement {
  double x = 0, y = 0, width = 0, height = 0, rotation = 0, opacity = 1;
  std::string mode = "normal";
  bool is_visible = true, flips_h = false, flips_v = false;
};

struct Layer {
  LayerBitmap bitmap;  // in its own size
  bool has_alpha = false;
  std::int64_t channels = 3;  // of the picture that it comes from
  std::string name;
  Placement placement;
};

struct CanvasSize {
  std::int64_t width = 0, height = 0;
};
std::optional<CanvasSize> canvas_of(const Value& document);

// The pictures of all batches from the lowest to the topmost, at most 50.
std::vector<Layer> layers_of(Context& ctx, const Value& document,
                             std::pmr::memory_resource& memory);

struct Arrangement {
  CanvasSize canvas;
  std::vector<Placement> placements;  // of the layers, in their order
  std::vector<std::size_t> order;     // of drawing
  LayerPixel background{};            // linear; transparent unless it is shown
};
// As the layers say themselves.
Arrangement own_arrangement(const std::vector<Layer>& layers, const Value& document);
// As an editor says; nothing when it says nothing, or speaks of other layers than those with these
// fingerprints.
std::optional<Arrangement> edited_arrangement(const Value& state, const std::vector<Layer>& layers,
                                              const std::vector<std::string>& fingerprints);

// What ComfyUI's editor tells layers by: 16 hexadecimal digits. Empty where this build has no
// SHA-256.
std::vector<std::string> fingerprints_of(const std::vector<Layer>& layers);

// The smallest rectangle of whole pixels around a layer that is turned around its middle.
struct PlacedBounds {
  double x, y, width, height;
};
PlacedBounds placed_bounds(const Placement& placement);

// Draws onto a canvas of arrangement.canvas, linear RGBA.
void draw_layers(Context& ctx, const std::vector<Layer>& layers, const Arrangement& arrangement,
                 std::pmr::vector<LayerPixel>& canvas);

}  // namespace heddle::image
