#include "pictures.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/byte_pictures.h"
#include "vision_tower.h"

namespace heddle::encoders {
namespace {

using blocks::Grids;
using blocks::GridSize;
using blocks::Resampling;

constexpr std::int64_t kColours = 3;
// Of CLIP's training pictures, which Qwen2.5-VL keeps, too.
constexpr float kMeans[kColours] = {0.48145466f, 0.4578275f, 0.40821073f};
constexpr float kDeviations[kColours] = {0.26862954f, 0.26130258f, 0.27577711f};
// Four tokens at least, and 16384 at most.
constexpr double kLeastPixels = 56.0 * 56.0, kMostPixels = 28.0 * 28.0 * 16384.0;

// The first three channels of each pixel.
std::pmr::vector<float> colours_of(Context& ctx, const Tensor& image, std::int64_t items,
                                   std::pmr::memory_resource& memory) {
  const HostFloats values(ctx, image);
  const std::int64_t channels = image.size(3),
                     pixels = checked_product({items, image.size(1), image.size(2)}, "the picture");
  std::pmr::vector<float> colours(std::size_t(pixels * kColours), &memory);
  for (std::int64_t i = 0; i < pixels; ++i)
    std::copy_n(values.data() + i * channels, kColours, colours.data() + i * kColours);
  return colours;
}

void resample(Context& ctx, const std::pmr::vector<float>& colours, const Grids& grids,
              const GridSize& to, Resampling method, float* out, HostMemory& memory) {
  blocks::resample(blocks::Source::of(colours.data(), grids), to, method, out, memory, [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  });
}

}  // namespace

GridSize size_of_area(const GridSize& from, std::int64_t pixels, std::int64_t step) {
  const double factor = std::sqrt(double(pixels) / (double(from.width) * double(from.height)));
  const auto side = [&](std::int64_t length) {
    return blocks::rounded(double(length) * factor / double(step)) * step;
  };
  const GridSize to{side(from.height), side(from.width)};
  if (to.height < 1 || to.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a picture of " + std::to_string(from.width) + " x " + std::to_string(from.height) +
                    " pixels would become " + std::to_string(to.width) + " x " +
                    std::to_string(to.height) + ". Give one that is less narrow.");
  return to;
}

GridSize size_in_units(const GridSize& from, std::int64_t unit) {
  const double height = double(from.height), width = double(from.width), side = double(unit);
  GridSize to{blocks::rounded(height / side) * unit, blocks::rounded(width / side) * unit};
  const double pixels = double(to.height) * double(to.width);
  const auto whole = [&](double units) { return std::int64_t(units) * unit; };
  if (pixels > kMostPixels) {
    const double less = std::sqrt(height * width / kMostPixels);
    to = {whole(std::floor(height / less / side)), whole(std::floor(width / less / side))};
  } else if (pixels < kLeastPixels) {
    const double more = std::sqrt(kLeastPixels / (height * width));
    to = {whole(std::ceil(height * more / side)), whole(std::ceil(width * more / side))};
  }
  return {std::max(to.height, unit), std::max(to.width, unit)};
}

GridSize square_size(const GridSize& from, std::int64_t side) {
  return size_of_area(from, side * side, 1);
}

GridSize picture_size(const Shape& shape, const std::string& port) {
  if (shape.size() != 4 || shape[3] < kColours || std::ranges::count(shape, 0) > 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                port + ": a picture is (batch, height, width, 3 or more channels). Link an IMAGE.");
  return {shape[1], shape[2]};
}

Tensor scaled_by_area(Context& ctx, const Tensor& image, const GridSize& to) {
  HostMemory memory(ctx);
  const Grids grids{image.size(0), {image.size(1), image.size(2)}, kColours};
  const Tensor out = ctx.make_host({grids.outer, to.height, to.width, kColours}, HEDDLE_F32);
  resample(ctx, colours_of(ctx, image, grids.outer, memory), grids, to, Resampling::area,
           out.data<float>(), memory);
  return out;
}

std::pmr::vector<float> resampled_colours(Context& ctx, const Tensor& image, const GridSize& to,
                                          HostMemory& memory) {
  const Grids grids{image.size(0), {image.size(1), image.size(2)}, kColours};
  std::pmr::vector<float> colours = colours_of(ctx, image, grids.outer, memory);
  if (to == grids.size) return colours;
  std::pmr::vector<float> made(
      std::size_t(checked_product({grids.outer, to.height, to.width, kColours}, "the picture")),
      &memory);
  resample(ctx, colours, grids, to, Resampling::bicubic_antialiased, made.data(), memory);
  return made;
}

Tensor vision_pixels(Context& ctx, const Tensor& image, const GridSize& to, const Value& settings,
                     std::int64_t count) {
  if (const auto side = settings.get<std::int64_t>("side", 0)) {
    const Tensor even = scaled_by_area(ctx, image.slice(0, 0, count),
                                       square_size({image.size(1), image.size(2)}, side));
    return tower_pixels(ctx, even, Record(settings).set("size", value_of(side)).value(), true);
  }
  HostMemory memory(ctx);
  const Grids grids{count, {image.size(1), image.size(2)}, kColours};
  std::pmr::vector<float> pixels(
      std::size_t(checked_product({count, to.height, to.width, kColours}, "the picture")), &memory);
  std::pmr::vector<float> colours = colours_of(ctx, image, count, memory);
  if (settings.get<bool>("sees_bytes", false))
    blocks::resample_cubic_bytes(colours.data(), grids, to, pixels.data(), memory, [&] {
      if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    });
  else
    resample(ctx, colours, grids, to, Resampling::bilinear, pixels.data(), memory);
  const ColourStatistics known = colour_statistics(settings);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = (pixels[i] - known.means[i % kColours]) / known.deviations[i % kColours];
  return ctx.upload({count, to.height, to.width, kColours}, HEDDLE_F32, pixels.data());
}

ColourStatistics colour_statistics(const Value& settings) {
  ColourStatistics known{};
  for (std::int64_t c = 0; c < kColours; ++c) {
    known.means[c] = float(settings.get<double>("pixel_mean", kMeans[c]));
    known.deviations[c] = float(settings.get<double>("pixel_deviation", kDeviations[c]));
  }
  return known;
}

std::uint64_t scaling_bytes(const Shape& image, const GridSize& to) {
  const Grids grids{image[0], {image[1], image[2]}, kColours};
  const std::int64_t copied = checked_product(
                         {image[0], image[1], image[2], kColours, std::int64_t(sizeof(float))},
                         "the picture"),
                     made = checked_product(
                         {image[0], to.height, to.width, kColours, std::int64_t(sizeof(float))},
                         "the picture");
  return blocks::resampling_bytes(grids, to) + std::uint64_t(checked_sum({copied, made}, "bytes"));
}

}  // namespace heddle::encoders
