#include "upscale_nodes.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "noised_picture.h"
#include "plugins/blocks/resample.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

constexpr std::int64_t kUpscaledCell = 4;  // pixels along a side of a cell of the latent
constexpr std::int64_t kUpscaledChannels = 4, kUpscaledColours = 3;

// In cells, as ComfyUI counts.
blocks::GridSize upscaled_cells(const Shape& pictures, double ratio) {
  const auto cells = [&](std::int64_t side) {
    return std::int64_t(std::max(1.0, std::nearbyint(double(side) * ratio))) / kUpscaledCell;
  };
  const blocks::GridSize made{cells(pictures[1]), cells(pictures[2])};
  if (made.height > 0 && made.width > 0) return made;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "scale_ratio: a picture of " + std::to_string(pictures[2]) + " x " +
                  std::to_string(pictures[1]) + " pixels becomes less than " +
                  std::to_string(kUpscaledCell) + " wide or high. Give a larger ratio.");
}

Value with_picture(const Value& list, const Value& picture, double noise) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(Record(list.item(i))
                          .set(kConcatPicture, picture)
                          .set(kPictureNoise, value_of(noise))
                          .value());
  return list_of(entries);
}

}  // namespace

void SD_4XUpscale_Conditioning::execute(Context& ctx) {
  const Tensor pictures = ctx[images];
  if (pictures.rank() != 4 || pictures.size(3) != kUpscaledColours || pictures.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "images: a picture of " +
                    std::to_string(pictures.rank() == 4 ? pictures.size(3) : 0) +
                    " channels; the x4 upscaler reads 3. Leave transparency out.");
  HostMemory memory(ctx);
  const blocks::GridSize to = upscaled_cells(pictures.shape(), ctx[scale_ratio]);
  const std::int64_t rows = pictures.size(0), cells = to.height * to.width;
  const Shape shape{rows, kUpscaledColours, to.height, to.width};
  std::pmr::vector<float> resized(
      std::size_t(checked_product({rows, kUpscaledColours, to.height, to.width}, "the picture")),
      &memory);
  const auto all = blocks::Source::of(
      pictures.data<float>(), {rows, {pictures.size(1), pictures.size(2)}, kUpscaledColours});
  blocks::resample(blocks::centre_cropped(all, to), to, blocks::Resampling::bilinear,
                   resized.data(), memory);
  const Tensor planes = ctx.make_host(shape, HEDDLE_F32);
  float* made = planes.data<float>();
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t colour = 0; colour < kUpscaledColours; ++colour)
      for (std::int64_t cell = 0; cell < cells; ++cell)
        *made++ = 2 * resized[std::size_t((row * cells + cell) * kUpscaledColours + colour)] - 1;
  const Tensor empty = ctx.make_host({rows, kUpscaledChannels, to.height, to.width}, HEDDLE_F32);
  std::fill_n(empty.data<float>(), empty.count(), 0.0f);
  const double noise = ctx[noise_augmentation];
  ctx[positive_out] = with_picture(ctx[positive], value_of(planes), noise);
  ctx[negative_out] = with_picture(ctx[negative], value_of(planes), noise);
  ctx[latent] = Record().set("samples", value_of(empty)).value();
}

void SD_4XUpscale_Conditioning::infer(Infer& question) {
  const auto pictures = question.shape(images);
  const auto ratio = question[scale_ratio], noise = question[noise_augmentation];
  if (!pictures || pictures->size() != 4 || !ratio || !noise) return;
  const blocks::GridSize to = upscaled_cells(*pictures, *ratio);
  const Value picture = told_info(
      tensor_info(HEDDLE_F32, Shape{(*pictures)[0], kUpscaledColours, to.height, to.width}));
  const auto tell = [&](const Input<Value>& list, const Output<Value>& changed) {
    std::vector<EntryShapes> entries = entry_shapes(question, list);
    for (EntryShapes& entry : entries)
      entry.scope = Record(entry.scope)
                        .set(kConcatPicture, picture)
                        .set(kPictureNoise, value_of(*noise))
                        .value();
    infer_entries(question, changed, entries);
  };
  tell(positive, positive_out);
  tell(negative, negative_out);
  question.out(latent, "samples", HEDDLE_F32,
               {(*pictures)[0], kUpscaledChannels, to.height, to.width});
}

}  // namespace heddle::samplers
