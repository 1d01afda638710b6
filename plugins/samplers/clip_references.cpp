// Pictures and clips at pictures of the video that is drawn, or before it (reference_input.h).
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/minimax_latents.h"
#include "reference_input.h"

namespace heddle::samplers {
namespace {

// A latent as (1, channels, frames, height, width); none where it is no such clip.
std::optional<Shape> known_clip(const Shape& samples, const ReferenceLayout& layout) {
  Shape shape = samples;
  if (shape.size() == 4) shape.insert(shape.begin() + 2, 1);
  const bool is_clip = shape.size() == 5 && shape[0] == 1 && shape[1] == layout.channels;
  if (is_clip && shape[2] > 0 && shape[3] > 0 && shape[4] > 0) return shape;
  return {};
}

Shape clip_shape(const Shape& samples, const ReferenceLayout& layout) {
  if (std::optional<Shape> shape = known_clip(samples, layout)) return *std::move(shape);
  std::string sides;
  for (const std::int64_t side : samples)
    sides += (sides.empty() ? "" : ", ") + std::to_string(side);
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "a picture that the model is shown is a latent of (" + sides +
                  "); it reads single clips of " + std::to_string(layout.channels) +
                  " channels. Encode it with the video autoencoder of MiniMax H3.");
}

std::int64_t clip_tokens(const Shape& shape, const ReferenceLayout& layout) {
  return checked_product({shape[2], layout.tokens_along(shape[3]), layout.tokens_along(shape[4])},
                         "the tokens of a clip");
}

struct ShownClip {
  Shape shape;
  double time = 0;
  const float* numbers = nullptr;
};

// A token after another, channel by channel; a side that lacks a cell has its first one there.
float* pack_clip(const ShownClip& clip, const ReferenceLayout& layout, const LatentFormat& format,
                 bool is_scaled, float* to) {
  const std::int64_t frames = clip.shape[2], height = clip.shape[3], width = clip.shape[4],
                     patch = layout.patch;
  for (std::int64_t t = 0; t < frames; ++t)
    for (std::int64_t y = 0; y < layout.tokens_along(height); ++y)
      for (std::int64_t x = 0; x < layout.tokens_along(width); ++x)
        for (std::int64_t c = 0; c < layout.channels; ++c)
          for (std::int64_t i = 0; i < patch * patch; ++i) {
            const std::int64_t row = (y * patch + i / patch) % height,
                               column = (x * patch + i % patch) % width;
            const float number = clip.numbers[((c * frames + t) * height + row) * width + column];
            const LatentFormat::Units& units = format.of(c);
            *to++ = is_scaled ? number : (number - float(units.shift)) * float(units.scale);
          }
  return to;
}

float* place_clip(const ShownClip& clip, const ReferenceLayout& layout, float* to) {
  const std::int64_t rows = layout.tokens_along(clip.shape[3]),
                     columns = layout.tokens_along(clip.shape[4]), height = rows * layout.patch,
                     width = columns * layout.patch;
  const double root = std::sqrt(double(height * width));
  const blocks::MinimaxSide down = blocks::MinimaxSide::of(height, root),
                            across = blocks::MinimaxSide::of(width, root);
  for (std::int64_t t = 0; t < clip.shape[2]; ++t)
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        const std::int64_t picture = blocks::minimax_pictures_before(t);
        *to++ = float(clip.time + blocks::kMinimaxPictureTime * double(picture));
        *to++ = float(down.first + down.step * double(y));
        *to++ = float(across.first + across.step * double(x));
      }
  return to;
}

}  // namespace

double shown_time(const Value& record, const Value& entry) {
  if (record.has(blocks::kMinimaxTime)) return record.get<double>(blocks::kMinimaxTime, 0);
  if (record.has(blocks::kMinimaxFrame))
    return entry.get<double>(blocks::kMinimaxStart, 0) +
           blocks::kMinimaxPictureTime * double(record.get<std::int64_t>(blocks::kMinimaxFrame, 0));
  throw Error(HEDDLE_UNSUPPORTED,
              "the conditioning carries a picture that tells no time (ReferenceLatent), which "
              "MiniMax H3 is not shown. Link MiniMaxH3ReferenceToVideo, MiniMaxH3ImageToVideo or "
              "MiniMaxH3AddGuide in the place of that node.");
}

std::optional<ReferenceTokenShapes> clip_reference_shapes(const blocks::EntryShapes& entry,
                                                          const ReferenceLayout& layout) {
  std::int64_t tokens = 0;
  for (const heddle_tensor_info& info : entry.references) {
    const std::optional<Shape> shape = known_clip(blocks::shape_of(info), layout);
    if (!shape) return {};
    tokens += clip_tokens(*shape, layout);
  }
  return ReferenceTokenShapes{
      {1, tokens, layout.channels * layout.patch * layout.patch}, {tokens, 3}, false, false};
}

ReferenceTokens clip_reference_tokens(Context& ctx, const Value& entry,
                                      const ReferenceLayout& layout, const LatentFormat& format) {
  HostMemory memory(ctx);
  const Value list = entry.field("reference_latents");
  std::int64_t tokens = 0;
  std::vector<Tensor> samples;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    samples.push_back(list.item(i).field("samples").as<Tensor>());
    tokens += clip_tokens(clip_shape(samples.back().shape(), layout), layout);
  }
  const Shape shape{1, tokens, layout.channels * layout.patch * layout.patch};
  const Tensor packed = ctx.make_host(shape, HEDDLE_F32),
               places = ctx.make_host({tokens, 3}, HEDDLE_F32);
  float *token = packed.data<float>(), *place = places.data<float>();
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value record = list.item(i);
    std::pmr::vector<float> numbers(std::size_t(samples[i].count()), &memory);
    const bool is_f32 = samples[i].dtype() == HEDDLE_F32;
    read_to<float>(ctx, is_f32 ? samples[i] : ops::cast(ctx, samples[i], HEDDLE_F32), numbers);
    const ShownClip clip{clip_shape(samples[i].shape(), layout), shown_time(record, entry),
                         numbers.data()};
    token = pack_clip(clip, layout, format, record.get<bool>("scaled", false), token);
    place = place_clip(clip, layout, place);
  }
  return {ctx.upload(shape, HEDDLE_F32, packed.data<float>()),
          ctx.upload({tokens, 3}, HEDDLE_F32, places.data<float>()),
          {},
          {}};
}

}  // namespace heddle::samplers
