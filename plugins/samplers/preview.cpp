#include "preview.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/node.hpp>
#include <heddle/ops.hpp>

namespace heddle::samplers {

std::optional<PreviewMap> PreviewMap::of(const Value& settings) {
  const Value rows = settings.field("preview_factors");
  if (!rows || !rows.is(HEDDLE_KIND_LIST) || rows.count() < 2) return std::nullopt;
  PreviewMap map;
  for (std::uint32_t r = 0; r < rows.count(); ++r) {
    const Value row = rows.item(r);
    if (!row.is(HEDDLE_KIND_LIST) || row.count() != 3) return std::nullopt;
    for (std::uint32_t c = 0; c < 3; ++c) {
      const Value number = row.item(c);
      if (!number.is(HEDDLE_KIND_FLOAT) && !number.is(HEDDLE_KIND_INT)) return std::nullopt;
      map.factors_.push_back(float(number.as<double>()));
    }
  }
  return map;
}

std::vector<std::uint8_t> PreviewMap::pixels(std::span<const float> latents) const {
  const std::size_t positions = latents.size() / channels();
  const float* const constant = factors_.data() + 3 * channels();
  std::vector<std::uint8_t> pixels;
  pixels.reserve(3 * positions);
  for (std::size_t p = 0; p < positions; ++p)
    for (std::size_t colour = 0; colour < 3; ++colour) {
      float sum = constant[colour];
      for (std::size_t c = 0; c < channels(); ++c)
        sum += latents[c * positions + p] * factors_[3 * c + colour];
      // Not a number is black.
      pixels.push_back(sum > 0 ? std::uint8_t(std::min(sum, 1.0f) * 255.0f + 0.5f) : 0);
    }
  return pixels;
}

namespace {

// (4 channels, height, width), where four channels one after another are a cell of 2 x 2, to
// (channels, 2 height, 2 width).
std::vector<float> unpacked(std::span<const float> cells, std::size_t height, std::size_t width) {
  std::vector<float> latents(cells.size());
  const std::size_t places = height * width;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t channel = i / places, y = i % places / width, x = i % width;
    const std::size_t row = 2 * y + channel % 4 / 2, column = 2 * x + channel % 2;
    latents[(channel / 4 * 2 * height + row) * 2 * width + column] = cells[i];
  }
  return latents;
}

}  // namespace

void show_preview(Context& ctx, const PreviewMap& map, const Tensor& given, std::uint32_t step,
                  std::uint32_t step_count) {
  // Of a video its first frame, as ComfyUI shows.
  const bool is_video = given.rank() == 5 && given.size(2) > 0;
  const Tensor latents =
      is_video ? ops::contiguous(ctx, given.slice(2, 0, 1))
                     .reshape({given.size(0), given.size(1), given.size(3), given.size(4)})
               : given;
  const Shape shape = latents.shape();
  if (shape.size() != 4 || shape[0] == 0) return;
  const bool is_packed = std::size_t(shape[1]) == 4 * map.channels();
  if (!is_packed && std::size_t(shape[1]) != map.channels()) return;
  HostMemory memory(ctx);
  std::pmr::vector<float> first(std::size_t(latents.count() / shape[0]), &memory);
  read_to<float>(ctx, latents.slice(0, 0, 1), first);
  std::vector<float> apart;
  if (is_packed) apart = unpacked(first, std::size_t(shape[2]), std::size_t(shape[3]));
  const std::vector<std::uint8_t> pixels =
      map.pixels(is_packed ? std::span<const float>(apart) : std::span<const float>(first));
  const std::int64_t side = is_packed ? 2 : 1;
  ctx.preview({sizeof(heddle_preview), checked_cast<std::uint32_t>(side * shape[3], "width"),
               checked_cast<std::uint32_t>(side * shape[2], "height"), step, step_count,
               pixels.data()});
}

}  // namespace heddle::samplers
