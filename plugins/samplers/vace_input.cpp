#include "vace_input.h"

#include <algorithm>

#include <heddle/ops.hpp>

namespace heddle::samplers {
namespace {

constexpr std::size_t kVideoRank = 5;

std::int64_t vace_channels(const Value& settings) {
  return settings.get<std::int64_t>("vace_channels", 0);
}

// Why a context is none for this model and this point; empty: it is one.
std::string vace_fault(const Shape& frames, const Shape& mask, std::int64_t channels,
                       const Shape& grid) {
  if (frames.size() != kVideoRank || mask.size() != kVideoRank)
    return "is no latent of a video with a mask of one";
  if (frames[1] + mask[1] != channels)
    return "has " + std::to_string(frames[1]) + " channels of latents and " +
           std::to_string(mask[1]) + " of masks, the model reads " + std::to_string(channels) +
           " in all";
  const auto size = [](const Shape& of) {
    return std::to_string(of[of.size() - 3]) + " frames of " + std::to_string(of[of.size() - 2]) +
           "x" + std::to_string(of.back());
  };
  for (const Shape* shape : {&frames, &mask})
    if (!std::equal(shape->begin() + 2, shape->end(), grid.begin(), grid.end()))
      return "is " + size(*shape) + ", the latent that is drawn is " + size(grid);
  return "";
}

Shape part_of_grid(const ConcatPlace& place) { return place.box ? place.box->size : place.grid; }

// The part of the grid that is wanted, of axes 2 to 4.
Tensor in_box(const Tensor& video, const ConcatPlace& place) {
  if (!place.box) return video;
  Tensor part = video;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t begin = place.box->begin[axis];
    part = part.slice(std::uint32_t(axis + 2), begin, begin + place.box->size[axis]);
  }
  return part;
}

// One number for each channel, to be broadcast.
template <class Of>
Tensor by_channel(Context& ctx, std::int64_t channels, Of&& of) {
  std::vector<float> numbers;
  for (std::int64_t c = 0; c < channels; ++c) numbers.push_back(of(c));
  return ctx.upload({1, channels, 1, 1, 1}, HEDDLE_F32, numbers.data());
}

VaceInput nothing_given(Context& ctx, std::int64_t channels, const LatentFormat& format,
                        const ConcatPlace& place) {
  const Shape part = part_of_grid(place);
  const Tensor made = ctx.make({1, channels, part[0], part[1], part[2]}, HEDDLE_F32);
  const std::int64_t latents = std::min(2 * format.channels, channels);
  // As ComfyUI does: zeros before they are scaled as latents are.
  const Tensor zeros = ctx.make({1, latents, part[0], part[1], part[2]}, HEDDLE_F32);
  ops::fill(ctx, zeros, 0);
  to_model_units(ctx, zeros, format, made.slice(1, 0, latents));
  ops::fill(ctx, made.slice(1, latents, channels), 1);
  const Tensor strength = ctx.make_host({1}, HEDDLE_F32);
  *strength.data<float>() = 1;
  return {made, strength};
}

}  // namespace

void to_model_units(Context& ctx, const Tensor& latents, const LatentFormat& format,
                    const Tensor& out) {
  const std::int64_t channels = latents.size(1), each = std::max<std::int64_t>(format.channels, 1);
  const Tensor shift =
                   by_channel(ctx, channels,
                              [&](std::int64_t c) { return -float(format.of(c % each).shift); }),
               scale = by_channel(ctx, channels,
                                  [&](std::int64_t c) { return float(format.of(c % each).scale); });
  ops::add_into(ctx, latents, shift, out);
  ops::mul_into(ctx, out, scale, out);
}

VaceInput vace_of(Context& ctx, const Value& entry, const Value& settings,
                  const ConcatPlace& place) {
  const std::int64_t channels = vace_channels(settings);
  const LatentFormat format = latent_format(settings);
  if (place.grid.size() != 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "VACE draws videos, and the latent has no frames. Give it that of WanVaceToVideo.");
  const Value frames = entry.field(kVaceFrames), masks = entry.field(kVaceMasks),
              strengths = entry.field(kVaceStrengths);
  const std::uint32_t count = frames.count();
  if (count == 0) return nothing_given(ctx, channels, format, place);
  if (masks.count() != count || strengths.count() != count)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning has " + std::to_string(count) +
                                             " videos for VACE, " + std::to_string(masks.count()) +
                                             " masks and " + std::to_string(strengths.count()) +
                                             " strengths. Give it what WanVaceToVideo makes.");
  std::int64_t rows = 1;
  for (std::uint32_t k = 0; k < count; ++k) {
    const Shape video = frames.item(k).as<Tensor>().shape(),
                mask = masks.item(k).as<Tensor>().shape();
    if (const std::string fault = vace_fault(video, mask, channels, place.grid); !fault.empty())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "context " + std::to_string(k) + " for VACE ('vace_frames') " + fault +
                      ". Take the latent and all contexts from WanVaceToVideo of one size and "
                      "length, all with a reference picture or all without.");
    if (video[0] > 1 || mask[0] > 1) rows = place.items;
  }
  const Shape part = part_of_grid(place);
  const Tensor all =
      ctx.make({rows, std::int64_t(count) * channels, part[0], part[1], part[2]}, HEDDLE_F32);
  const Tensor strength = ctx.make_host({std::int64_t(count)}, HEDDLE_F32);
  for (std::uint32_t k = 0; k < count; ++k) {
    strength.data<float>()[k] = float(strengths.item(k).as<double>());
    const Tensor video = frames.item(k).as<Tensor>(), mask = masks.item(k).as<Tensor>();
    const std::int64_t first = std::int64_t(k) * channels, middle = first + video.size(1);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto one = [&](const Tensor& of) {
        const std::int64_t from = spread_row(row, rows, of.size(0));
        return in_box(of.slice(0, from, from + 1), place);
      };
      const Tensor to = all.slice(0, row, row + 1);
      to_model_units(ctx, one(video), format, to.slice(1, first, middle));
      ops::copy_into(ctx, one(mask), to.slice(1, middle, first + channels));
    }
  }
  return {all, strength};
}

std::optional<VaceShapes> vace_shapes(const blocks::EntryShapes& entry, const Value& settings,
                                      const ConcatPlace& place) {
  const std::int64_t channels = vace_channels(settings);
  if (place.grid.size() != 3) return {};
  std::int64_t rows = 1;
  for (const blocks::VaceShapes& told : entry.vace) {
    const Shape video = blocks::shape_of(told.frames), mask = blocks::shape_of(told.mask);
    if (!vace_fault(video, mask, channels, place.grid).empty()) return {};
    if (video[0] > 1 || mask[0] > 1) rows = place.items;
  }
  const auto count = std::int64_t(std::max<std::size_t>(entry.vace.size(), 1));
  const Shape part = part_of_grid(place);
  return VaceShapes{{rows, count * channels, part[0], part[1], part[2]}, {count}};
}

}  // namespace heddle::samplers
