#include "picture_inputs.h"

#include <algorithm>

#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "pictures.h"

namespace heddle::encoders {
namespace {

std::int64_t hidden_width(const TextEncoder& encoder) {
  return model_settings(encoder.model()).get<std::int64_t>("hidden_width", 0);
}

blocks::GridSize pixels_of(const PictureTokens& at, std::int64_t unit) {
  return {at.rows * unit, at.columns * unit};
}

std::int64_t unit_of(const Value& vision) {
  return model_settings(vision).get<std::int64_t>("unit", 1);
}

// Layers of the language model behind which something of pictures is added.
std::int64_t depths_of(const Value& vision) {
  return model_settings(vision).get<std::int64_t>("deep", 0);
}

// Tokens of a picture have its number, and each of a text one of its own.
std::vector<float> groups_of(const Windows& windows) {
  std::vector<float> groups;
  for (std::int64_t i = 0; i < windows.length(); ++i) groups.push_back(float(-1 - i));
  for (const PictureTokens& at : windows.pictures)
    std::fill(groups.begin() + at.begin, groups.begin() + at.end(), float(at.number));
  return groups;
}

}  // namespace

Value slots_of(const Windows& windows) {
  if (!windows.drops_pictures || windows.pictures.empty()) return {};
  std::vector<Value> slots;
  for (const std::int64_t slot : windows.picture_slots()) slots.push_back(value_of(slot));
  return list_of(slots);
}

Value spans_of(const Windows& windows) {
  if (!windows.tells_pictures || windows.pictures.empty()) return {};
  std::vector<Value> spans;
  for (const PictureTokens& at : windows.pictures) {
    const auto told = [&](std::int64_t token) {
      return value_of(std::clamp<std::int64_t>(token, windows.dropped, windows.length()) -
                      windows.dropped);
    };
    spans.push_back(list_of({told(at.begin - 1), told(at.end() + 1)}));
  }
  return list_of(spans);
}

std::vector<float> token_positions(std::int64_t length,
                                   const std::vector<PictureTokens>& pictures) {
  std::vector<float> positions;
  positions.reserve(std::size_t(3 * length));
  const auto add = [&](std::int64_t time, std::int64_t row, std::int64_t column) {
    for (const std::int64_t one : {time, row, column}) positions.push_back(float(one));
  };
  std::int64_t token = 0, next = 0;
  const auto count_to = [&](std::int64_t end) {
    for (; token < end; ++token, ++next) add(next, next, next);
  };
  for (const PictureTokens& at : pictures) {
    count_to(at.begin);
    for (std::int64_t row = 0; row < at.rows; ++row)
      for (std::int64_t column = 0; column < at.columns; ++column)
        add(next, next + row, next + column);
    token = at.end();
    next += std::max(at.rows, at.columns);
  }
  count_to(length);
  return positions;
}

std::vector<float> token_positions(const TextEncoder& encoder, const Windows& windows) {
  const bool counts_on =
      windows.pictures.empty() || model_settings(encoder.vision()).get<bool>("counts_on", false);
  return token_positions(windows.length(),
                         counts_on ? std::vector<PictureTokens>() : windows.pictures);
}

void show_pictures(Context& ctx, const TextEncoder& encoder, const Prompt& prompt,
                   const Windows& windows, Record& inputs) {
  const Value vision = encoder.vision();
  const std::int64_t length = windows.length(), width = hidden_width(encoder);
  const Tensor rows = ctx.make({1, length, width}, HEDDLE_F32);
  ops::fill(ctx, rows, 0);
  const std::int64_t depths = depths_of(vision);
  const Tensor deep = depths > 0 ? ctx.make({depths, length, width}, HEDDLE_F32) : Tensor();
  if (deep) ops::fill(ctx, deep, 0);
  std::vector<float> is_text(std::size_t(length), 1.0f);
  for (const PictureTokens& at : windows.pictures) {
    const PromptPicture& shown = prompt.pictures[at.number];
    const Tensor pixels = vision_pixels(ctx, shown.pixels, pixels_of(at, unit_of(vision)),
                                        model_settings(vision), shown.frames);
    const Value seen = call_model(ctx, vision, Record().set("picture", value_of(pixels)).value());
    ops::copy_into(ctx, seen.field("tokens").as<Tensor>(), rows.slice(1, at.begin, at.end()));
    for (std::int64_t i = 0; i < depths; ++i)
      ops::copy_into(ctx, seen.field(("deep." + std::to_string(i)).c_str()).as<Tensor>(),
                     deep.slice(0, i, i + 1).slice(1, at.begin, at.end()));
    std::fill(is_text.begin() + at.begin, is_text.begin() + at.end(), 0.0f);
  }
  const std::vector<float> positions = token_positions(encoder, windows);
  if (deep) inputs.set("deep", value_of(deep));
  if (model_takes(encoder.model(), "groups")) {
    const std::vector<float> groups = groups_of(windows);
    inputs.set("groups", value_of(ctx.upload({length}, HEDDLE_F32, groups.data())));
  }
  inputs.set("pictures", value_of(rows))
      .set("is_text", value_of(ctx.upload({1, length, 1}, HEDDLE_F32, is_text.data())))
      .set("positions", value_of(ctx.upload({length, 3}, HEDDLE_F32, positions.data())));
}

std::vector<Infer::Named> vision_shapes(const TextEncoder& encoder, const Prompt& prompt,
                                        const Windows& windows) {
  std::vector<Infer::Named> calls;
  if (prompt.pictures.empty()) return calls;
  const std::int64_t unit = unit_of(encoder.vision());
  for (const PictureTokens& at : windows.pictures) {
    const blocks::GridSize size = pixels_of(at, unit);
    calls.push_back(
        {"picture", HEDDLE_F32, {prompt.pictures[at.number].frames, size.height, size.width, 3}});
  }
  return calls;
}

std::vector<Infer::Named> picture_shapes(const TextEncoder& encoder, const Windows& windows) {
  if (windows.pictures.empty()) return {};
  const std::int64_t length = windows.length(), width = hidden_width(encoder),
                     depths = depths_of(encoder.vision());
  std::vector<Infer::Named> inputs{{"pictures", HEDDLE_F32, {1, length, width}},
                                   {"is_text", HEDDLE_F32, {1, length, 1}},
                                   {"positions", HEDDLE_F32, {length, 3}}};
  if (model_takes(encoder.model(), "groups")) inputs.push_back({"groups", HEDDLE_F32, {length}});
  if (depths > 0) inputs.push_back({"deep", HEDDLE_F32, {depths, length, width}});
  return inputs;
}

}  // namespace heddle::encoders
