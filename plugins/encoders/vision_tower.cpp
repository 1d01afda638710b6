#include "vision_tower.h"

#include <algorithm>
#include <cmath>

#include <heddle/host_memory.hpp>
#include <heddle/session.hpp>

#include "pictures.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

// Before the middle is cut out: the short side as long as the tower's, or both.
GridSize stretched_size(const GridSize& from, std::int64_t size, bool is_cut) {
  if (!is_cut || (from.height == size && from.width == size)) return {size, size};
  const double factor = double(size) / double(std::min(from.height, from.width));
  return {blocks::rounded(factor * double(from.height)),
          blocks::rounded(factor * double(from.width))};
}

// The middle of the first of masks (n, H, W), size x size numbers.
std::pmr::vector<float> mask_numbers(Context& ctx, const Tensor& mask, std::int64_t size,
                                     HostMemory& memory) {
  if (mask.rank() < 2 || mask.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "mask is no tensor (batch, height, width). Link a MASK.");
  const std::int64_t height = mask.size(-2), width = mask.size(-1), side = std::min(height, width);
  std::pmr::vector<float> all(std::size_t(mask.count()), &memory);
  read_to<float>(ctx, mask, all);
  const auto top = std::int64_t(std::nearbyint(double(height - side) / 2)),
             left = std::int64_t(std::nearbyint(double(width - side) / 2));
  std::pmr::vector<float> middle(std::size_t(side * side), &memory);
  for (std::int64_t y = 0; y < side; ++y)
    std::copy_n(all.data() + (top + y) * width + left, side, middle.data() + y * side);
  if (side == size) return middle;
  std::pmr::vector<float> made(std::size_t(size * size), &memory);
  const blocks::Grids grids{1, {side, side}, 1};
  blocks::resample(blocks::Source::of(middle.data(), grids), {size, size},
                   blocks::Resampling::bicubic_antialiased, made.data(), memory, [&] {
                     if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                   });
  return made;
}

// Of the result: what the model calls it, and its name there.
struct TowerOutput {
  const char *output, *field;
  bool is_of_clip = true;
};
constexpr TowerOutput kTowerOutputs[] = {{"last_hidden", "last_hidden", false},
                                         {"penultimate", "penultimate"},
                                         {"projected", "image_embeds"},
                                         {"mm_projected", "mm_projected"},
                                         {"hidden_20", "hidden_20"},
                                         {"hidden_11", "hidden_11"},
                                         {"hidden_2", "hidden_2"}};

bool is_made(const TowerOutput& seen, const Value& settings) {
  if (!seen.is_of_clip) return true;
  if (std::string_view(seen.output).starts_with("hidden_"))
    return settings.get<bool>("sees_depths", false);
  if (std::string_view(seen.output) == "mm_projected") return settings.has("mm_width");
  return std::string_view(seen.output) == "projected" ? settings.has("projected_width")
                                                      : settings.get<bool>("sees_layers", false);
}

}  // namespace

Tensor tower_pixels(Context& ctx, const Tensor& image, const Value& settings, bool is_cut,
                    const Tensor& mask) {
  const auto size = settings.get<std::int64_t>("size", 0);
  const ColourStatistics known = colour_statistics(settings);
  const GridSize from = picture_size(image.shape(), "image"),
                 to = stretched_size(from, size, is_cut);
  HostMemory memory(ctx);
  const std::int64_t items = image.size(0), top = (to.height - size) / 2,
                     left = (to.width - size) / 2;
  const std::pmr::vector<float> whole = resampled_colours(ctx, image, to, memory);
  std::pmr::vector<float> pixels(std::size_t(items * size * size * 3), &memory);
  float* out = pixels.data();
  for (std::int64_t item = 0; item < items; ++item)
    for (std::int64_t y = 0; y < size; ++y) {
      const float* row = whole.data() + ((item * to.height + top + y) * to.width + left) * 3;
      for (std::int64_t i = 0; i < size * 3; ++i) {
        const float byte = std::nearbyint(std::clamp(255.0f * row[i], 0.0f, 255.0f));
        *out++ = (byte / 255.0f - known.means[i % 3]) / known.deviations[i % 3];
      }
    }
  if (mask) {
    const std::pmr::vector<float> factors = mask_numbers(ctx, mask, size, memory);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] *= factors[i / 3 % factors.size()];
  }
  return ctx.upload({items, size, size, 3}, HEDDLE_F32, pixels.data());
}

std::uint64_t tower_bytes(const Shape& image, std::int64_t size, bool is_cut) {
  return 2 * scaling_bytes(image, stretched_size(picture_size(image, "image"), size, is_cut));
}

Value seen_by_tower(Context& ctx, const Value& tower, const Tensor& image, bool is_cut,
                    const Tensor& mask) {
  const Value settings = model_settings(tower);
  const Tensor pixels = tower_pixels(ctx, image, settings, is_cut, mask);
  const Value made = call_model(ctx, tower, Record().set("picture", value_of(pixels)).value());
  Record record;
  for (const TowerOutput& seen : kTowerOutputs)
    if (is_made(seen, settings)) record.set(seen.field, made.field(seen.output));
  return record.value();
}

std::vector<std::pair<std::string, Shape>> tell_tower(Infer& question, const Value& tower,
                                                      const Shape& image, bool is_cut) {
  const Value settings = model_settings(tower);
  const auto size = settings.get<std::int64_t>("size", 0),
             tokens = settings.get<std::int64_t>("tokens", 0),
             width = settings.get<std::int64_t>("width", 0);
  const std::int64_t items = image[0];
  question.host_scratch(tower_bytes(image, size, is_cut));
  question.call(tower, {{{{"picture", HEDDLE_F32, {items, size, size, 3}}}, {}}});
  std::vector<std::pair<std::string, Shape>> made;
  for (const TowerOutput& seen : kTowerOutputs) {
    if (!is_made(seen, settings)) continue;
    const bool is_row = std::string_view(seen.output) == "projected";
    const bool is_patches = std::string_view(seen.output) == "mm_projected";
    if (is_patches)
      made.emplace_back(seen.field,
                        Shape{items, tokens - 1, settings.get<std::int64_t>("mm_width", 0)});
    else
      made.emplace_back(seen.field,
                        is_row ? Shape{items, settings.get<std::int64_t>("projected_width", 0)}
                               : Shape{items, tokens, width});
  }
  return made;
}

}  // namespace heddle::encoders
