#include "plugins/image/layer_blend.h"

#include <algorithm>
#include <cmath>

namespace heddle::image {

namespace {

enum Mode {
  kNormal,
  kMultiply,
  kScreen,
  kOverlay,
  kDarken,
  kLighten,
  kDodge,
  kBurn,
  kHardLight,
  kSoftLight,
  kDifference,
  kExclusion,
  kLinearDodge,
  kLinearBurn,
  kVividLight,
  kPinLight,
  kLinearLight,
  kHardMix,
  kSubtract,
  kDivide,
  kGrainExtract,
  kGrainMerge,
  kHue,
  kSaturation,
  kColor,
  kLuminosity
};

constexpr float kTiny = 1e-6f;

float dodge(float i, float l) {
  return i <= 0 ? 0.0f : 1 - l <= kTiny ? 1.0f : std::min(i / (1 - l), 1.0f);
}
float burn(float i, float l) {
  return i >= 1 ? 1.0f : l <= kTiny ? 0.0f : 1 - std::min((1 - i) / l, 1.0f);
}

// i: a channel of what is below; l: of the layer.
float blend_channel(int mode, float i, float l) {
  switch (mode) {
    case kMultiply:
      return i * l;
    case kScreen:
      return 1 - (1 - i) * (1 - l);
    case kOverlay:
      return i < 0.5f ? 2 * i * l : 1 - 2 * (1 - l) * (1 - i);
    case kDarken:
      return std::min(i, l);
    case kLighten:
      return std::max(i, l);
    case kDodge:
      return dodge(i, l);
    case kBurn:
      return burn(i, l);
    case kHardLight:
      return l > 0.5f ? std::min(1 - (1 - i) * (1 - (l - 0.5f) * 2), 1.0f)
                      : std::min(i * (l * 2), 1.0f);
    case kSoftLight:
      return (1 - i) * (i * l) + i * (1 - (1 - i) * (1 - l));
    case kDifference:
      return std::fabs(i - l);
    case kExclusion:
      return 0.5f - 2 * (i - 0.5f) * (l - 0.5f);
    case kLinearDodge:
      return i + l;
    case kLinearBurn:
      return i + l - 1;
    case kVividLight:
      return l <= 0.5f ? burn(i, 2 * l) : dodge(i, 2 * l - 1);
    case kPinLight:
      return l > 0.5f ? std::max(i, 2 * (l - 0.5f)) : std::min(i, 2 * l);
    case kLinearLight:
      return i + 2 * l - 1;
    case kHardMix:
      return i + l < 1 ? 0.0f : 1.0f;
    case kSubtract:
      return std::max(i - l, 0.0f);
    case kDivide:
      return std::clamp(i / std::max(l, kTiny), 0.0f, 1.0f);
    case kGrainExtract:
      return i - l + 0.5f;
    case kGrainMerge:
      return i + l - 0.5f;
    default:
      return l;
  }
}

struct ChannelRange {
  float least, most;
  explicit ChannelRange(const LayerPixel& p)
      : least(std::min({p[0], p[1], p[2]})), most(std::max({p[0], p[1], p[2]})) {}
  float width() const { return most - least; }
};

LayerPixel scaled_pixel(const LayerPixel& p, float ratio, float offset) {
  return {p[0] * ratio + offset, p[1] * ratio + offset, p[2] * ratio + offset, p[3]};
}
LayerPixel grey_pixel(float value) { return {value, value, value, 1}; }

LayerPixel with_hue(const LayerPixel& i, const LayerPixel& l) {
  const ChannelRange from(l), to(i);
  if (from.width() <= kTiny) return i;
  const float saturation = to.most != 0 ? to.width() / to.most : 0;
  const float ratio = saturation * to.most / from.width();
  return scaled_pixel(l, ratio, to.most - from.most * ratio);
}

LayerPixel with_saturation(const LayerPixel& i, const LayerPixel& l) {
  const ChannelRange from(l), to(i);
  if (to.width() <= kTiny) return grey_pixel(to.most);
  const float saturation = from.most != 0 ? from.width() / from.most : 0;
  const float ratio = saturation * to.most / to.width();
  return scaled_pixel(i, ratio, (1 - ratio) * to.most);
}

LayerPixel with_color(const LayerPixel& i, const LayerPixel& l) {
  const ChannelRange from(l), to(i);
  const float light = (to.least + to.most) / 2, other = (from.least + from.most) / 2;
  if (std::fabs(other) <= kTiny || std::fabs(1 - other) <= kTiny) return grey_pixel(light);
  const float room = std::min(light, 1 - light), ratio = room / std::min(other, 1 - other);
  return scaled_pixel(l, ratio,
                      (light > 0.5f ? 1 - 2 * room : 0) + (other > 0.5f ? 2 * room - ratio : 0));
}

float pixel_luminance(const LayerPixel& p) {
  return p[0] * 0.2224884f + p[1] * 0.71690369f + p[2] * 0.06060791f;
}

LayerPixel with_luminosity(const LayerPixel& i, const LayerPixel& l) {
  const float below = pixel_luminance(i);
  return scaled_pixel(i, std::fabs(below) >= kTiny ? pixel_luminance(l) / below : 0, 0);
}

LayerPixel blended_pixel(int mode, const LayerPixel& i, const LayerPixel& l) {
  switch (mode) {
    case kHue:
      return with_hue(i, l);
    case kSaturation:
      return with_saturation(i, l);
    case kColor:
      return with_color(i, l);
    case kLuminosity:
      return with_luminosity(i, l);
    default: {
      LayerPixel result{0, 0, 0, 1};
      for (std::size_t c = 0; c < 3; ++c) result[c] = blend_channel(mode, i[c], l[c]);
      return result;
    }
  }
}

LayerPixel converted_pixel(const LayerPixel& p, float (*convert)(float)) {
  return {convert(p[0]), convert(p[1]), convert(p[2]), p[3]};
}

}  // namespace

LayerMode layer_mode(std::string_view name) {
  LayerMode mode;
  for (int i = 0; kLayerModes[i] != nullptr; ++i)
    if (name == kLayerModes[i]) mode.number = i;
  constexpr int kLinear[] = {kNormal,      kMultiply, kDarken, kLighten,
                             kLinearDodge, kSubtract, kDivide, kLuminosity};
  mode.is_perceptual = std::ranges::find(kLinear, mode.number) == std::end(kLinear);
  mode.covers = mode.number == kNormal;
  return mode;
}

// IEC 61966-2-1.
float srgb_to_linear(float value) {
  return value <= 0.04045f ? value / 12.92f
                           : std::pow((std::max(value, 0.0f) + 0.055f) / 1.055f, 2.4f);
}
float linear_to_srgb(float value) {
  return value <= 0.0031308f ? 12.92f * value
                             : 1.055f * std::pow(std::max(value, 0.0f), 1.0f / 2.4f) - 0.055f;
}

LayerPixel put_onto(const LayerMode& mode, const LayerPixel& below, const LayerPixel& layer,
                    float opacity) {
  const float alpha = layer[3] * opacity, under = below[3];
  const LayerPixel mixed =
      mode.is_perceptual
          ? converted_pixel(blended_pixel(mode.number, converted_pixel(below, linear_to_srgb),
                                          converted_pixel(layer, linear_to_srgb)),
                            srgb_to_linear)
          : blended_pixel(mode.number, below, layer);
  LayerPixel result = below;
  if (!mode.covers) {
    for (std::size_t c = 0; c < 3 && under != 0 && alpha != 0; ++c)
      result[c] = mixed[c] * alpha + below[c] * (1 - alpha);
    return result;
  }
  result[3] = alpha + (1 - alpha) * under;
  if (alpha == 0 || result[3] == 0) return result;
  const float ratio = alpha / result[3];
  for (std::size_t c = 0; c < 3; ++c)
    result[c] = under == 0
                    ? layer[c]
                    : ratio * (under * (mixed[c] - layer[c]) + layer[c] - below[c]) + below[c];
  return result;
}

}  // namespace heddle::image
