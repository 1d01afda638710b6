#include "guide_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include <heddle/checked.hpp>

#include "guide_masks.h"

namespace heddle::samplers {
namespace {

using GuideKind = ConditioningInput::Kind;

struct GuideInput {
  std::string_view name;
  GuideKind kind;
};
constexpr GuideInput kGuideInputs[] = {{kGuideFrames, GuideKind::kGuideFrames},
                                       {kTokenRows, GuideKind::kTokenRows},
                                       {kTokenPlaces, GuideKind::kTokenPlaces},
                                       {kGuideWeights, GuideKind::kGuideWeights}};

// A frame's number of rows and columns for a token.
std::int64_t factor_of(const Value& keyframe) {
  return keyframe.count() > 2 ? keyframe.item(2).as<std::int64_t>() : 1;
}
bool has_factors(const Value& keyframes) {
  for (std::uint32_t k = 0; k < keyframes.count(); ++k)
    if (factor_of(keyframes.item(k)) > 1) return true;
  return false;
}

// Attention counts all alike where no guide says otherwise.
bool has_weights(const Value& guides) {
  for (std::uint32_t k = 0; k < guides.count(); ++k)
    if (guides.item(k).get<double>("strength", 1.0) != 1.0 ||
        guides.item(k).get<bool>("is_masked", false))
      return true;
  return false;
}

Tensor frames_input(Context& ctx, const Value& keyframes) {
  const bool is_wide = has_factors(keyframes);
  const Tensor made = ctx.make_host({keyframes.count(), is_wide ? 3 : 2}, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::uint32_t k = 0; k < keyframes.count(); ++k) {
    const Value one = keyframes.item(k);
    for (const std::uint32_t end : {0u, 1u}) *to++ = float(one.item(end).as<std::int64_t>());
    if (is_wide) *to++ = float(factor_of(one));
  }
  return made;
}

// Which place each token is, or which token each place is, or the number of all.
Tensor tokens_input(Context& ctx, const GuideTokens& tokens, bool by_place) {
  std::vector<std::int32_t> numbers;
  const auto none = checked_cast<std::int32_t>(tokens.count(), "tokens");
  std::int32_t place = 0, token = 0;
  for (std::int64_t frame = 0; frame < tokens.frames(); ++frame)
    for (std::int64_t row = 0; row < tokens.rows(); ++row)
      for (std::int64_t column = 0; column < tokens.columns(); ++column, ++place) {
        const bool is_one = tokens.is_token(frame, row, column);
        if (by_place)
          numbers.push_back(is_one ? token : none);
        else if (is_one)
          numbers.push_back(place);
        token += is_one ? 1 : 0;
      }
  return ctx.upload({std::int64_t(numbers.size())}, HEDDLE_I32, numbers.data());
}

// Logarithms of the weights of the guides' tokens; of weight 0 what no sum with it is above.
Tensor weights_input(Context& ctx, const Value& guides, const GuideTokens& tokens) {
  constexpr float kNone = -1e30f;
  const Tensor made = ctx.make_host({tokens.of_guides()}, HEDDLE_F32);
  const std::span<float> all(made.data<float>(), std::size_t(made.count()));
  std::size_t at = 0;
  std::int64_t frame = tokens.frames();
  for (std::uint32_t k = 0; k < guides.count(); ++k)
    frame -= guides.item(k).get<std::int64_t>("frames", 0);
  for (std::uint32_t k = 0; k < guides.count(); ++k) {
    const Value guide = guides.item(k);
    const auto frames = guide.get<std::int64_t>("frames", 0);
    const std::int64_t factor = tokens.factor(frame);
    const MaskCells cells{frames, tokens.rows() / factor, tokens.columns() / factor};
    const auto strength = float(guide.get<double>("strength", 1.0));
    const std::span<float> here =
        all.subspan(at, std::size_t(cells.frames * cells.rows * cells.columns));
    std::fill(here.begin(), here.end(), 1.0f);
    if (guide.get<bool>("is_masked", false))
      put_cell_means(ctx, guide.get<Tensor>("mask", {}), cells, here);
    for (float& weight : here) {
      weight *= strength;
      weight = weight > 0 ? std::log(weight) : kNone;
    }
    at += here.size();
    frame += frames;
  }
  return made;
}

}  // namespace

Shape video_grid(const ConcatPlace& place) {
  if (place.parts.empty()) return place.grid;
  return {place.parts.front().begin() + 2, place.parts.front().end()};
}

GuideTokens::GuideTokens(const Value& entry, const Shape& grid)
    : factors_(std::size_t(grid.at(0)), 1), rows_(grid.at(1)), columns_(grid.at(2)) {
  const Value keyframes = entry.field(kKeyframes), guides = entry.field(kGuideEntries);
  guides_ = keyframes.count();
  if (guides_ > frames())
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning tells of " + std::to_string(guides_) +
                                             " frames of guides, the latent has " +
                                             std::to_string(frames()) +
                                             " in all. Link the latent of LTXVAddGuide.");
  for (std::uint32_t k = 0; k < keyframes.count(); ++k) {
    const std::int64_t factor = factor_of(keyframes.item(k));
    if (factor < 1 || rows_ % factor != 0 || columns_ % factor != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "a guide has one token for " + std::to_string(factor) + " x " +
                      std::to_string(factor) + " places, and the latent " +
                      std::to_string(columns_) + " x " + std::to_string(rows_) +
                      ". Take guides out (LTXVCropGuides) before a latent is resized.");
    factors_[std::size_t(frames() - guides_) + k] = factor;
  }
  std::int64_t told = 0;
  for (std::uint32_t k = 0; k < guides.count(); ++k)
    told += guides.item(k).get<std::int64_t>("frames", 0);
  if (has_weights(guides) && told != guides_)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning tells of " + std::to_string(guides_) +
                    " frames of guides, and how much " + std::to_string(told) +
                    " of them are attended to. Link the conditioning of LTXVAddGuide as it is.");
}

std::int64_t GuideTokens::count() const {
  std::int64_t all = 0;
  for (std::int64_t frame = 0; frame < frames(); ++frame) all += in_frame(frame);
  return all;
}

std::int64_t GuideTokens::of_guides() const {
  std::int64_t all = 0;
  for (std::int64_t frame = frames() - guides_; frame < frames(); ++frame) all += in_frame(frame);
  return all;
}

std::int64_t GuideTokens::part() const {
  std::int64_t common = 0;
  for (std::int64_t frame = 0; frame < frames(); ++frame)
    common = std::gcd(common, in_frame(frame));
  return common;
}

std::optional<GuideKind> guide_input_kind(const std::string& name) {
  for (const GuideInput& input : kGuideInputs)
    if (name == input.name) return input.kind;
  return {};
}

bool is_guide_input(GuideKind kind) {
  return std::ranges::find(kGuideInputs, kind, &GuideInput::kind) != std::end(kGuideInputs);
}

bool is_guide_given(GuideKind kind, const Value& entry) {
  const Value keyframes = entry.field(kKeyframes);
  if (keyframes.count() == 0) return false;
  if (kind == GuideKind::kGuideFrames) return true;
  return kind == GuideKind::kGuideWeights ? has_weights(entry.field(kGuideEntries))
                                          : has_factors(keyframes);
}

heddle_dtype guide_input_type(GuideKind kind) {
  return kind == GuideKind::kTokenRows || kind == GuideKind::kTokenPlaces ? HEDDLE_I32 : HEDDLE_F32;
}

Shape guide_input_shape(GuideKind kind, const Value& entry, const Shape& grid) {
  const Value keyframes = entry.field(kKeyframes);
  if (kind == GuideKind::kGuideFrames) return {keyframes.count(), has_factors(keyframes) ? 3 : 2};
  if (kind == GuideKind::kTokenPlaces) return {grid.at(0) * grid.at(1) * grid.at(2)};
  const GuideTokens tokens(entry, grid);
  return {kind == GuideKind::kTokenRows ? tokens.count() : tokens.of_guides()};
}

Tensor guide_input_of(Context& ctx, GuideKind kind, const Value& entry, const ConcatPlace& place) {
  const Shape grid = video_grid(place);
  const bool is_of_places = kind != GuideKind::kGuideFrames;
  if (place.box && (is_of_places ? place.box->size != grid : place.box->size[0] != grid[0]))
    throw Error(HEDDLE_UNSUPPORTED,
                std::string("a conditioning has guides (LTXVAddGuide)") +
                    (is_of_places ? " of a strength, a mask or parameters of their own" : "") +
                    " and an area of a part of the " + (is_of_places ? "video" : "frames") +
                    ". Leave one of the two out.");
  if (!is_of_places) return frames_input(ctx, entry.field(kKeyframes));
  const GuideTokens tokens(entry, grid);
  return kind == GuideKind::kGuideWeights
             ? weights_input(ctx, entry.field(kGuideEntries), tokens)
             : tokens_input(ctx, tokens, kind == GuideKind::kTokenPlaces);
}

}  // namespace heddle::samplers
