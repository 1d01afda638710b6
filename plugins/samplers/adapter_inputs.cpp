#include "adapter_inputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <heddle/host_memory.hpp>

#include "noise_mask.h"
#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/unet_config.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

constexpr int kMostHalvings = 8;

// Rows that `rows` become for a batch: one serves all.
std::int64_t rows_for(std::int64_t rows, std::int64_t items) { return rows == 1 ? 1 : items; }

struct MaskPlace {
  std::string input;
  std::int64_t tokens = 0;
};

// The inputs of the model for this adapter's mask, which has places by halvings.
std::vector<MaskPlace> mask_places(const std::string& path, const Value& model,
                                   const Shape& point) {
  if (blocks::has_unet_patch(model, blocks::kShrink))
    throw Error(HEDDLE_UNSUPPORTED,
                "an IP-Adapter's attn_mask is laid over the sizes that the UNet's blocks have "
                "without PatchModelAddDownscale. Leave out one of the two.");
  std::vector<MaskPlace> places;
  std::int64_t height = point[2], width = point[3];
  for (int k = 0; k < kMostHalvings; ++k) {
    const std::string input = path + ".mask." + std::to_string(k);
    if (model_takes(model, input.c_str())) places.push_back({input, height * width});
    height = (height + 1) / 2;
    width = (width + 1) / 2;
  }
  return places;
}

// How the pack lays a mask over so many tokens of a latent.
PlaneSize mask_size(const Shape& point, std::int64_t tokens) {
  const double height = double(point[2]), width = double(point[3]);
  auto rows =
      std::max<std::int64_t>(std::int64_t(height / std::sqrt(height * width / double(tokens))), 1);
  rows += tokens % rows != 0 ? 1 : 0;
  return {rows, std::max<std::int64_t>(tokens / rows, 1)};
}

// Masks (n, H, W) for so many tokens, (rows, tokens, 1): too long ones lose both ends, too short
// ones get zeros there.
Tensor laid_over(Context& ctx, const std::pmr::vector<float>& planes, const PlaneSize& from,
                 const PlaneSize& to, std::int64_t tokens, std::int64_t rows, HostMemory& memory) {
  const std::pmr::vector<float> sized = resize_planes(planes, from, to, memory);
  const std::int64_t length = to.height * to.width, count = std::int64_t(sized.size()) / length;
  const Tensor laid = ctx.make_host({rows, tokens, 1}, HEDDLE_F32);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* source = sized.data() + std::min(row, count - 1) * length;
    float* out = laid.data<float>() + row * tokens;
    const std::int64_t before = length < tokens ? (tokens - length) / 2 : 0,
                       skipped = length > tokens ? (length - tokens) / 2 : 0;
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int64_t at = i - before + skipped;
      out[i] = i < before || at >= length ? 0.0f : source[at];
    }
  }
  return laid;
}

void add_masks(Context& ctx, Record& constants, const std::string& path, const Tensor& mask,
               const Value& model, const Shape& point) {
  if (mask.rank() < 2 || mask.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "attn_mask is no tensor (batch, height, width). Link a MASK.");
  HostMemory memory(ctx);
  std::pmr::vector<float> planes(std::size_t(mask.count()), &memory);
  read_to<float>(ctx, mask, planes);
  const PlaneSize from{mask.size(-2), mask.size(-1)};
  const std::int64_t rows = rows_for(mask.count() / (from.height * from.width), point[0]);
  for (const MaskPlace& place : mask_places(path, model, point))
    constants.set(place.input, value_of(laid_over(ctx, planes, from, mask_size(point, place.tokens),
                                                  place.tokens, rows, memory)));
}

// Tokens (n, T, C) for a batch; those of all items are (1, T, C).
Tensor tokens_of_items(Context& ctx, const Tensor& tokens, std::int64_t items) {
  const std::int64_t rows = rows_for(tokens.size(0), items);
  if (rows == tokens.size(0)) return tokens;
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(tokens.count()), &memory);
  read_to<float>(ctx, tokens, numbers);
  const Tensor all = ctx.make_host({rows, tokens.size(1), tokens.size(2)}, HEDDLE_F32);
  const std::int64_t width = tokens.size(1) * tokens.size(2);
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(numbers.data() + std::min(row, tokens.size(0) - 1) * width, width,
                all.data<float>() + row * width);
  return all;
}

// Fields of the adapter by the names of inputs.
struct TokenInput {
  const char *input, *positive, *negative;
};
constexpr TokenInput kTokenInputs[] = {{".tokens", "positive", "negative"},
                                       {".other", "other_positive", "other_negative"}};

}  // namespace

void add_adapter(Context& ctx, Record& constants, const std::string& path, const Value& adapter,
                 const Value& model, const Shape& point, bool is_negative) {
  for (const TokenInput& told : kTokenInputs) {
    const std::string input = path + told.input;
    const Value tokens = adapter.field(is_negative ? told.negative : told.positive);
    if (tokens && model_takes(model, input.c_str()))
      constants.set(input, value_of(tokens_of_items(ctx, tokens.as<Tensor>(), point[0])));
  }
  if (const Value mask = adapter.field("mask"))
    add_masks(ctx, constants, path, mask.as<Tensor>(), model, point);
}

bool tell_adapter(Constants& constants, const std::string& path, const Value& adapter,
                  const Value& model, const Shape& point) {
  for (const TokenInput& told : kTokenInputs) {
    const std::string input = path + told.input;
    const Value tokens = adapter.field(told.positive);
    if (!tokens || !model_takes(model, input.c_str())) continue;
    const auto info = blocks::info_of(tokens);
    if (!info || info->rank != 3) return false;
    constants.push_back(
        {input, HEDDLE_F32, {rows_for(info->shape[0], point[0]), info->shape[1], info->shape[2]}});
  }
  const Value mask = adapter.field("mask");
  if (!mask) return true;
  const auto info = blocks::info_of(mask);
  if (!info || info->rank < 2) return false;
  std::int64_t planes = 1;
  for (std::uint32_t axis = 0; axis + 2 < info->rank; ++axis) planes *= info->shape[axis];
  for (const MaskPlace& place : mask_places(path, model, point))
    constants.push_back({place.input, HEDDLE_F32, {rows_for(planes, point[0]), place.tokens, 1}});
  return true;
}

}  // namespace heddle::samplers
