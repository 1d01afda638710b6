#include "plugins/image/layers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#ifdef HEDDLE_WITH_SHA256
#include <sha2.h>
#endif

#include "plugins/image/boxes.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

constexpr std::size_t kMostLayers = 50;

bool truth_in(const Value& record, const char* key, bool otherwise) {
  const Value value = record.field(key);
  return value.is(HEDDLE_KIND_BOOL) ? value.as<bool>()
         : value ? number_in(record, key, value.is(HEDDLE_KIND_NONE) ? 0 : 1) != 0
                 : otherwise;
}

std::string text_in(const Value& record, const char* key, const char* otherwise) {
  const Value value = record.field(key);
  return value.is(HEDDLE_KIND_STR) ? value.as<std::string>() : otherwise;
}

std::uint8_t nearest_byte(float value) {
  const float scaled = std::nearbyint(value * 255.0f);
  return scaled > 0 ? std::uint8_t(std::min(scaled, 255.0f)) : 0;
}

// Picture i of a batch; its alpha times what a mask leaves of it.
LayerBitmap bitmap_of(const Pixels& image, const Pixels* mask, std::int64_t i,
                      std::pmr::memory_resource& memory) {
  const Extent& e = image.extent();
  LayerBitmap bitmap{e.width, e.height, std::pmr::vector<std::uint8_t>(&memory)};
  bitmap.rgba.resize(std::size_t(e.width * e.height * 4));
  for (std::int64_t y = 0; y < e.height; ++y)
    for (std::int64_t x = 0; x < e.width; ++x) {
      const float* const pixel = image.at(i, y, x);
      std::uint8_t* const to = bitmap.at(x, y);
      for (std::int64_t c = 0; c < 3; ++c) to[c] = nearest_byte(pixel[e.channels < 3 ? 0 : c]);
      float alpha = e.channels == 4 ? pixel[3] : 1.0f;
      if (mask != nullptr)
        alpha *= std::clamp(1.0f - *mask->at(mask->extent().count == 1 ? 0 : i, y, x), 0.0f, 1.0f);
      to[3] = nearest_byte(alpha);
    }
  return bitmap;
}

Placement placement_of(const Value& item, const Extent& e) {
  Placement p;
  p.x = double(whole_in(item, "x"));
  p.y = double(whole_in(item, "y"));
  const std::int64_t width = whole_in(item, "w"), height = whole_in(item, "h");
  p.width = double(width > 0 ? width : e.width);
  p.height = double(height > 0 ? height : e.height);
  p.rotation = number_in(item, "rotation");
  p.opacity = number_in(item, "opacity", 1);
  p.mode = text_in(item, "blend_mode", "normal");
  p.is_visible = truth_in(item, "visible", true);
  p.flips_h = truth_in(item, "flip_h", false);
  p.flips_v = truth_in(item, "flip_v", false);
  return p;
}

Placement edited_placement(const Value& entry, const LayerBitmap& bitmap) {
  const Value transform = entry.field("transform");
  Placement p;
  p.x = number_in(transform, "x");
  p.y = number_in(transform, "y");
  p.width = number_in(transform, "w", double(bitmap.width));
  p.height = number_in(transform, "h", double(bitmap.height));
  p.rotation = number_in(transform, "rotation");
  p.opacity = number_in(entry, "opacity", 1);
  p.mode = text_in(entry, "blend", "normal");
  p.is_visible = truth_in(entry, "visible", true);
  p.flips_h = truth_in(entry, "flipH", false);
  p.flips_v = truth_in(entry, "flipV", false);
  return p;
}

// "#rgb" or "#rrggbb"; white for anything else.
LayerPixel background_of(const Value& entry) {
  const auto opacity = float(std::clamp(number_in(entry, "opacity", 1), 0.0, 1.0));
  if (!entry.is(HEDDLE_KIND_RECORD) || !truth_in(entry, "visible", true) || opacity == 0) return {};
  std::string digits = text_in(entry, "color", "");
  digits.erase(0, digits.find_first_not_of(" \t\n"));
  digits.erase(digits.find_last_not_of(" \t\n") + 1);
  const bool is_colour = (digits.size() == 4 || digits.size() == 7) && digits[0] == '#' &&
                         digits.find_first_not_of("0123456789abcdefABCDEF", 1) == digits.npos;
  digits = is_colour ? digits.substr(1) : "ffffff";
  LayerPixel pixel{0, 0, 0, opacity};
  for (std::size_t c = 0; c < 3; ++c) {
    const std::string two =
        digits.size() == 3 ? std::string(2, digits[c]) : digits.substr(2 * c, 2);
    pixel[c] = srgb_to_linear(float(std::stoi(two, nullptr, 16)) / 255.0f);
  }
  return pixel;
}

std::vector<std::size_t> order_of(const Value& given, std::size_t count, std::size_t drawn) {
  std::vector<std::size_t> order;
  for (std::uint32_t i = 0; given.is(HEDDLE_KIND_LIST) && i < given.count(); ++i)
    if (given.item(i).is(HEDDLE_KIND_INT))
      order.push_back(std::size_t(given.item(i).as<std::int64_t>()));
  std::vector<std::size_t> sorted = order, all(count);
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < count; ++i) all[i] = i;
  if (sorted != all || given.count() != count) {
    order.resize(drawn);
    for (std::size_t i = 0; i < drawn; ++i) order[i] = i;
  }
  std::erase_if(order, [&](std::size_t i) { return i >= drawn; });
  return order;
}

#ifdef HEDDLE_WITH_SHA256
// repr() of a float.
std::string float_text(double number) {
  char digits[40];
  const double size = std::fabs(number);
  const bool is_fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end =
      std::to_chars(digits, digits + sizeof digits, number,
                    is_fixed ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string text(digits, end.ptr);
  return is_fixed && text.find('.') == text.npos ? text + ".0" : text;
}

std::string fingerprint_of(const Layer& layer) {
  SHA2_CTX hash;
  SHA256Init(&hash);
  const auto add = [&](std::string_view text) {
    SHA256Update(&hash, reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  const LayerBitmap& b = layer.bitmap;
  add("(1, " + std::to_string(b.height) + ", " + std::to_string(b.width) + ", " +
      std::to_string(layer.channels) + ")");
  std::string colours, alphas;
  for (std::size_t i = 0; i < b.rgba.size(); i += 4) {
    colours.append(reinterpret_cast<const char*>(&b.rgba[i]), 3);
    if (layer.has_alpha) alphas += char(b.rgba[i + 3]);
  }
  add(colours);
  add(alphas);
  const Placement& p = layer.placement;
  const auto whole = [](double x) { return std::to_string(std::int64_t(x)); };
  const auto truth = [](bool x) { return x ? "True" : "False"; };
  add("(" + whole(p.x) + ", " + whole(p.y) + ", " + whole(p.width) + ", " + whole(p.height) + ", " +
      float_text(p.rotation) + ", " + float_text(p.opacity) + ", '" + p.mode + "', " +
      truth(p.is_visible) + ", " + truth(p.flips_h) + ", " + truth(p.flips_v) + ")");
  std::uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &hash);
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", digest[i]);
    text += two;
  }
  return text;
}
#endif

}  // namespace

std::optional<CanvasSize> canvas_of(const Value& document) {
  const Value canvas = document.field("canvas");
  if (!canvas.is(HEDDLE_KIND_LIST) || canvas.count() != 2) return std::nullopt;
  const Value sides = Record().set("w", canvas.item(0)).set("h", canvas.item(1)).value();
  const CanvasSize size{whole_in(sides, "w"), whole_in(sides, "h")};
  return size.width > 0 && size.height > 0 ? std::optional(size) : std::nullopt;
}

std::vector<Layer> layers_of(Context& ctx, const Value& document,
                             std::pmr::memory_resource& memory) {
  const Value list = document.field("layers");
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    if (list.item(i).field("image").is(HEDDLE_KIND_TENSOR)) items.push_back(list.item(i));
  std::ranges::stable_sort(items, {}, [](const Value& item) { return whole_in(item, "z_index"); });
  std::vector<Layer> layers;
  for (const Value& item : items) {
    const Pixels image = Pixels::image(ctx, item.field("image").as<Tensor>(), "layers");
    const Extent& e = image.extent();
    std::optional<Pixels> mask;
    if (item.field("mask").is(HEDDLE_KIND_TENSOR)) {
      mask = Pixels::mask(ctx, item.field("mask").as<Tensor>(), "layers");
      mask->resize(ctx, e.size(), "bilinear");
    }
    for (std::int64_t i = 0; i < e.count; ++i) {
      if (layers.size() == kMostLayers)
        throw Error(HEDDLE_INVALID_ARGUMENT, "layers: there are more than " +
                                                 std::to_string(kMostLayers) +
                                                 ". Composite some of them first.");
      const bool is_masked = mask && (mask->extent().count == 1 || i < mask->extent().count);
      layers.push_back({bitmap_of(image, is_masked ? &*mask : nullptr, i, memory),
                        is_masked || e.channels == 4, e.channels, text_in(item, "name", ""),
                        placement_of(item, e)});
    }
  }
  return layers;
}

PlacedBounds placed_bounds(const Placement& p) {
  const double cos = std::cos(p.rotation), sin = std::sin(p.rotation), cx = p.x + p.width / 2,
               cy = p.y + p.height / 2;
  double left = HUGE_VAL, top = HUGE_VAL, right = -HUGE_VAL, bottom = -HUGE_VAL;
  for (const double dx : {-p.width / 2, p.width / 2})
    for (const double dy : {-p.height / 2, p.height / 2}) {
      const double x = cx + dx * cos - dy * sin, y = cy + dx * sin + dy * cos;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  const double x = std::floor(left), y = std::floor(top);
  return {x, y, std::max(1.0, std::ceil(right) - x), std::max(1.0, std::ceil(bottom) - y)};
}

Arrangement own_arrangement(const std::vector<Layer>& layers, const Value& document) {
  Arrangement made;
  double right = 1, bottom = 1;
  for (const Layer& layer : layers) {
    const PlacedBounds bounds = placed_bounds(layer.placement);
    right = std::max(right, bounds.x + bounds.width);
    bottom = std::max(bottom, bounds.y + bounds.height);
    made.order.push_back(made.placements.size());
    made.placements.push_back(layer.placement);
  }
  constexpr double kMost = 1e9;
  made.canvas = canvas_of(document).value_or(
      CanvasSize{std::int64_t(std::min(right, kMost)), std::int64_t(std::min(bottom, kMost))});
  return made;
}

std::optional<Arrangement> edited_arrangement(const Value& given, const std::vector<Layer>& layers,
                                              const std::vector<std::string>& fingerprints) {
  Value state = given;
  if (state.is(HEDDLE_KIND_STR) && !state.text().empty())
    state = json_of_text(state.as<std::string>(), "compositor");
  const Value entries = state.field("layers"), inputs = state.field("inputs"),
              canvas = state.field("canvas");
  if (number_in(state, "version", 1) != 1 || !entries.is(HEDDLE_KIND_LIST) ||
      entries.count() == 0 || !canvas.is(HEDDLE_KIND_RECORD) || layers.empty() ||
      inputs.count() != fingerprints.size())
    return std::nullopt;
  for (std::uint32_t i = 0; i < inputs.count(); ++i)
    if (!inputs.item(i).is(HEDDLE_KIND_STR) || inputs.item(i).text() != fingerprints[i])
      return std::nullopt;
  Arrangement made;
  made.canvas = {std::int64_t(std::nearbyint(std::clamp(number_in(canvas, "w"), 0.0, 1e9))),
                 std::int64_t(std::nearbyint(std::clamp(number_in(canvas, "h"), 0.0, 1e9)))};
  if (made.canvas.width < 1 || made.canvas.height < 1) return std::nullopt;
  for (std::uint32_t i = 0; i < layers.size(); ++i)
    made.placements.push_back(
        edited_placement(i < entries.count() ? entries.item(i) : Value(), layers[i].bitmap));
  made.order = order_of(state.field("order"), entries.count(), layers.size());
  made.background = background_of(state.field("background"));
  return made;
}

std::vector<std::string> fingerprints_of([[maybe_unused]] const std::vector<Layer>& layers) {
  std::vector<std::string> all;
#ifdef HEDDLE_WITH_SHA256
  for (const Layer& layer : layers) all.push_back(fingerprint_of(layer));
#endif
  return all;
}

}  // namespace heddle::image
