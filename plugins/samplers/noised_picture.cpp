#include "noised_picture.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/resample.h"
#include "random.h"

namespace heddle::samplers {
namespace {

constexpr std::uint64_t kSeedsBefore = 10;

double share_of(const Value& entry) {
  const double share = entry.get<double>(kPictureNoise, 0.0);
  if (share >= 0 && share <= 1) return share;
  throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning's noise_augmentation is " +
                                           std::to_string(share) + ". Give one from 0 to 1.");
}

// The planes of the picture in the size of the point.
std::pmr::vector<float> planes_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                                  const blocks::GridSize& to, std::int64_t& rows,
                                  std::pmr::memory_resource& memory) {
  const Tensor given = entry.field(kConcatPicture).as<Tensor>();
  if (given.rank() != 4 || given.size(1) != layout.image || given.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning's picture has " +
                                             std::to_string(given.rank() > 1 ? given.size(1) : 0) +
                                             " channels; the model reads " +
                                             std::to_string(layout.image) +
                                             " of a picture. Link SD_4XUpscale_Conditioning.");
  rows = given.size(0);
  const Tensor floats = given.dtype() == HEDDLE_F32 ? given : ops::cast(ctx, given, HEDDLE_F32);
  std::pmr::vector<float> values(std::size_t(given.count()), &memory);
  read_to<float>(ctx, floats, values);
  const blocks::GridSize size{given.size(2), given.size(3)};
  if (size == to) return values;
  const std::int64_t planes = rows * layout.image;
  std::pmr::vector<float> resized(
      std::size_t(checked_product({planes, to.height, to.width}, "what the model reads")), &memory);
  const auto all = blocks::Source::of(values.data(), {planes, size, 1});
  blocks::resample(blocks::centre_cropped(all, to), to, blocks::Resampling::bilinear,
                   resized.data(), memory);
  return resized;
}

void mix_with_noise(std::pmr::vector<float>& values, const Betas& betas, std::int64_t level,
                    std::uint64_t seed, std::pmr::memory_resource& memory) {
  const double sigma = NoiseLevels::discrete(betas).sigmas()[std::size_t(level)];
  const auto kept = float(1 / std::sqrt(1 + sigma * sigma)),
             mixed = float(sigma / std::sqrt(1 + sigma * sigma));
  std::pmr::vector<float> noise(values.size(), &memory);
  Generator(seed - kSeedsBefore).normal(noise);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kept * values[i] + mixed * noise[i];
}

}  // namespace

std::int64_t noise_level_of(const Value& entry, std::int64_t levels) {
  return std::int64_t(std::nearbyint(double(levels) * share_of(entry)));  // as Python rounds
}

Tensor noised_picture_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                         const ConcatPlace& place) {
  HostMemory memory(ctx);
  const blocks::GridSize cells{place.grid[0], place.grid[1]};
  const std::int64_t plane = cells.height * cells.width;
  std::int64_t rows = place.items;
  std::pmr::vector<float> values(&memory);
  if (entry.has(kConcatPicture))
    values = planes_of(ctx, entry, layout, cells, rows, memory);
  else
    values.assign(std::size_t(checked_product({rows, layout.image, plane}, "the picture")), 0.0f);
  if (share_of(entry) > 0)
    mix_with_noise(values, layout.betas, noise_level_of(entry, layout.levels), place.seed, memory);
  const Box whole{place.grid, {0, 0}};
  const Box& box = place.box ? *place.box : whole;
  const Shape shape{place.items, layout.image, box.size[0], box.size[1]};
  const Tensor made = ctx.make_host(shape, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::int64_t item = 0; item < place.items; ++item)
    for (std::int64_t channel = 0; channel < layout.image; ++channel)
      for (std::int64_t y = 0; y < box.size[0]; ++y) {
        const std::int64_t row = spread_row(item, place.items, rows) * layout.image + channel;
        const float* from =
            values.data() + row * plane + (box.begin[0] + y) * cells.width + box.begin[1];
        to = std::copy_n(from, box.size[1], to);
      }
  return ctx.upload(shape, HEDDLE_F32, made.data<float>());
}

}  // namespace heddle::samplers
