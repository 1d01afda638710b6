#include "list_nodes.h"

#include "json_dump.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "python_text.h"

namespace heddle::loaders {
namespace {

// Typed widgets send {"__type__": ..., "__value__": ...}, or the value alone.
Value unwrapped(const Value& value) {
  return value.is(HEDDLE_KIND_RECORD) && value.has("__value__") ? value.field("__value__") : value;
}

std::int64_t hex_digits(const std::string& colour) {
  const bool fits = (colour.size() == 7 || colour.size() == 9) && colour[0] == '#' &&
                    colour.find_first_not_of("0123456789abcdefABCDEF", 1) == colour.npos;
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "color: '" + colour + "' is no colour. Give one as #rrggbb or #rrggbbaa.");
  return std::stoll(colour.substr(1), nullptr, 16);
}

}  // namespace

void CreateList::execute(Context& ctx) {
  std::vector<Value> items;
  for (const blocks::GrownInput& input : blocks::grown_inputs(ctx, inputs.port))
    for (std::uint32_t i = 0; i < input.value.count(); ++i) items.push_back(input.value.item(i));
  ctx[list] = list_of(items);
}

void GetItemFromList::execute(Context& ctx) {
  const Value all = ctx[list];
  const std::int64_t count = all.count(), wanted = ctx[index];
  if (wanted < -count || wanted >= count)
    throw Error(HEDDLE_INVALID_ARGUMENT, "index: " + std::to_string(wanted) +
                                             " is outside of the list of " + std::to_string(count) +
                                             " items. Ask for one inside.");
  const Value one = all.item(static_cast<std::uint32_t>(wanted < 0 ? wanted + count : wanted));
  ctx[item] = one.is(HEDDLE_KIND_LIST) ? one : list_of({one});
}

void ColorToRGBInt::execute(Context& ctx) {
  const std::string colour = ctx[color];
  const std::int64_t digits = hex_digits(colour);
  const bool has_alpha = colour.size() == 9;
  ctx[rgb_int] = has_alpha ? digits >> 8 : digits;
  ctx[hex] = colour.substr(0, 7);
  ctx[alpha] = has_alpha ? double(digits & 0xFF) / 255.0 : 1.0;
}

void PrimitiveBoundingBox::execute(Context& ctx) {
  ctx[box] = Record()
                 .set("x", value_of(ctx[x]))
                 .set("y", value_of(ctx[y]))
                 .set("width", value_of(ctx[width]))
                 .set("height", value_of(ctx[height]))
                 .value();
}

void CurveEditor::execute(Context& ctx) { ctx[out] = unwrapped(ctx[curve]); }

void ConvertArrayToString::execute(Context& ctx) {
  ctx[out] = json_dump(unwrapped(ctx[array]), int(ctx[indent]));
}

void ConvertDictionaryToString::execute(Context& ctx) {
  ctx[out] = json_dump(unwrapped(ctx[dictionary]), int(ctx[indent]));
}

}  // namespace heddle::loaders
