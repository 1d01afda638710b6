#include "prompt_nodes.h"

#include <cmath>
#include <numbers>

#include "characters.h"
#include "json_dump.h"
#include "plugins/blocks/dynamic_inputs.h"

namespace heddle::loaders {
namespace {

std::string view_of(std::int64_t horizontal) {
  constexpr const char* kViews[] = {
      "front view", "front-right quarter view", "right side view", "back-right quarter view",
      "back view",  "back-left quarter view",   "left side view",  "front-left quarter view"};
  // Eight sectors of 45 degrees, each around its direction.
  return kViews[std::size_t(std::fmod(double(horizontal) + 22.5, 360.0) / 45.0)];
}

std::string height_of(std::int64_t vertical) {
  return vertical < -15  ? "low-angle shot"
         : vertical < 15 ? "eye-level shot"
         : vertical < 45 ? "elevated shot"
                         : "high-angle shot";
}

Value point(double x, double y, double z) {
  return Record().set("x", value_of(x)).set("y", value_of(y)).set("z", value_of(z)).value();
}

// Upper-case texts of a list or of the values of a record; what is none or empty is left out.
Value palette_of(const Value& colours) {
  std::vector<Value> palette;
  for (std::uint32_t i = 0; i < colours.count(); ++i) {
    const Value colour = colours.item(i);
    if (colour.is(HEDDLE_KIND_STR) && !colour.text().empty())
      palette.push_back(value_of(upper(colour.text())));
  }
  return list_of(palette);
}

// What the model reads of a box: what it shows, then the words that are written there.
std::string description_of(const Value& element) {
  const auto words = [&](const char* field) {
    const Value text = element.field(field);
    return text.is(HEDDLE_KIND_STR) ? stripped(text.text()) : std::string();
  };
  const std::string shown = words("desc"), written = words("text");
  if (written.empty()) return shown;
  return (shown.empty() ? "" : shown + ", ") + "text reading \"" + written + "\"";
}

// The four sides of a box, as they are: top, left, bottom, right in thousandths.
Value sides_of(const Value& element, std::uint32_t number) {
  constexpr std::uint32_t kSides = 4;
  const Value box = element.field("bbox");
  bool is_box = box.is(HEDDLE_KIND_LIST) && box.count() == kSides;
  for (std::uint32_t i = 0; is_box && i < kSides; ++i) {
    const Value side = box.item(i);
    is_box = side.is(HEDDLE_KIND_INT) || side.is(HEDDLE_KIND_UINT) || side.is(HEDDLE_KIND_FLOAT);
  }
  if (!is_box)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "element: number " + std::to_string(number) +
                    " has no bbox of four numbers (top, left, bottom, right). Link the elements of "
                    "CreateBoundingBoxes.");
  return box;
}

}  // namespace

void CameraAngle::execute(Context& ctx) {
  // Around the middle of a cube of side 1 that stands on the ground, at a fixed distance; zooming
  // narrows the picture instead.
  constexpr double kDistance = 6, kFieldOfView = 35, kZoomStep = 0.0875, kMiddle = 0.5;
  constexpr double kRadian = std::numbers::pi / 180;
  const std::int64_t horizontal = ctx[horizontal_angle], vertical = ctx[vertical_angle];
  const double near = ctx[zoom], around = double(horizontal) * kRadian,
               up = double(vertical) * kRadian;
  ctx[camera_info] = Record()
                         .set("position", point(kDistance * std::cos(up) * std::sin(around),
                                                kMiddle + kDistance * std::sin(up),
                                                kDistance * std::cos(up) * std::cos(around)))
                         .set("target", point(0, kMiddle, 0))
                         .set("zoom", value_of(1 + near * kZoomStep))
                         .set("cameraType", value_of("perspective"))
                         .set("fov", value_of(kFieldOfView))
                         .value();
  ctx[prompt] = view_of(horizontal) + " " + height_of(vertical) + " " +
                (near < 2   ? "wide shot"
                 : near < 6 ? "medium shot"
                            : "close-up");
}

void BuildJsonPromptIdeogram::execute(Context& ctx) {
  const blocks::ChosenVariant chosen(ctx, style);
  const std::string description = ctx[high_level_description];
  const Value palette = palette_of(ctx[color_palette]), elements = ctx[element];
  Record caption;
  if (!stripped(description).empty()) caption.set("high_level_description", value_of(description));
  if (chosen.key() != "none") {
    Record said;
    said.set("aesthetics", value_of(ctx[aesthetics])).set("lighting", value_of(ctx[lighting]));
    if (chosen.key() == "photo") said.set("photo", value_of(chosen.text("photo")));
    said.set("medium", value_of(ctx[medium]));
    if (chosen.key() == "art_style") said.set("art_style", value_of(chosen.text("art_style")));
    if (palette.count() > 0) said.set("color_palette", palette);
    caption.set("style_description", said.value());
  }
  caption.set("compositional_deconstruction",
              Record()
                  .set("background", value_of(ctx[background]))
                  .set("elements", elements.is(HEDDLE_KIND_LIST) ? elements : list_of({}))
                  .value());
  ctx[prompt] = caption.value();
}

void Flux3LayoutPrompt::execute(Context& ctx) {
  const Value elements = ctx[element];
  std::vector<Value> rows;
  for (std::uint32_t i = 0; elements.is(HEDDLE_KIND_LIST) && i < elements.count(); ++i)
    rows.push_back(Record()
                       .set("id", value_of("obj_" + std::to_string(i + 1)))
                       .set("bbox", sides_of(elements.item(i), i + 1))
                       .set("desc", value_of(description_of(elements.item(i))))
                       .value());
  std::string text = ctx[prompt_in];
  if (!rows.empty()) text += (text.empty() ? "" : " ") + json_dump(list_of(rows), 0);
  ctx[prompt] = text;
}

}  // namespace heddle::loaders
