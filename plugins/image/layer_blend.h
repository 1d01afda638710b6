// How a layer is put onto what is below it: GIMP's modes, as ComfyUI's compositor has them. Pixels
// are linear RGB and alpha, not premultiplied. Pure; any thread.
#pragma once

#include <array>
#include <string_view>

namespace heddle::image {

// In the order in which nodes offer them; NULL at the end.
inline constexpr const char* kLayerModes[] = {
    "normal",       "multiply",    "screen",        "overlay",     "darken",       "lighten",
    "color-dodge",  "color-burn",  "hard-light",    "soft-light",  "difference",   "exclusion",
    "linear-dodge", "linear-burn", "vivid-light",   "pin-light",   "linear-light", "hard-mix",
    "subtract",     "divide",      "grain-extract", "grain-merge", "hue",          "saturation",
    "color",        "luminosity",  nullptr};

using LayerPixel = std::array<float, 4>;

struct LayerMode {
  int number = 0;              // in kLayerModes
  bool is_perceptual = false;  // blended as sRGB
  bool covers = true;          // false: it shows only where there is something below
};
// "normal" for a name that is none.
LayerMode layer_mode(std::string_view name);

float srgb_to_linear(float value);
float linear_to_srgb(float value);

LayerPixel put_onto(const LayerMode& mode, const LayerPixel& below, const LayerPixel& layer,
                    float opacity);

}  // namespace heddle::image
