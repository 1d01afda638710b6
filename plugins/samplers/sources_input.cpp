#include "sources_input.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "host_latent.h"

namespace heddle::samplers {
namespace {

constexpr std::size_t kSourceAxes = 5;
constexpr std::int64_t kSide = 2, kCells = kSide * kSide, kPlaceNumbers = 4;

constexpr std::int64_t tokens_of_side(std::int64_t cells) { return (cells + kSide - 1) / kSide; }

// Of a latent of a picture, its axes with one of frames.
Shape as_video(Shape shape) {
  if (shape.size() == kSourceAxes - 1) shape.insert(shape.begin() + 2, 1);
  return shape;
}
bool is_source(const Shape& shape, std::int64_t channels) {
  return shape.size() == kSourceAxes && shape[1] == channels && std::ranges::count(shape, 0) == 0;
}
std::int64_t tokens_in(const Shape& shape) {
  return shape[2] * tokens_of_side(shape[3]) * tokens_of_side(shape[4]);
}

struct ReadSource {
  Shape shape;
  std::pmr::vector<float> values;
};

// Calls of(frame, row, column) for each token.
template <class Of>
void each_token(const Shape& shape, Of&& of) {
  for (std::int64_t t = 0; t < shape[2]; ++t)
    for (std::int64_t y = 0; y < tokens_of_side(shape[3]); ++y)
      for (std::int64_t x = 0; x < tokens_of_side(shape[4]); ++x) of(t, y, x);
}

float* pack_source(const ReadSource& source, std::int64_t row, const LatentFormat& format,
                   float* to) {
  const std::int64_t channels = source.shape[1], height = source.shape[3], width = source.shape[4],
                     frame = height * width, plane = source.shape[2] * frame;
  const float* const item = source.values.data() + row * channels * plane;
  each_token(source.shape, [&](std::int64_t t, std::int64_t y, std::int64_t x) {
    for (std::int64_t i = 0; i < kCells; ++i) {
      const std::int64_t cell =
          (y * kSide + i / kSide) % height * width + (x * kSide + i % kSide) % width;
      for (std::int64_t c = 0; c < channels; ++c) {
        const LatentFormat::Units& units = format.of(c);
        *to++ = (item[c * plane + t * frame + cell] - float(units.shift)) * float(units.scale);
      }
    }
  });
  return to;
}

}  // namespace

SourceTokens source_tokens_of(Context& ctx, const Value& entry, const Value& settings,
                              std::int64_t items) {
  const LatentFormat format = latent_format(settings);
  const Value list = entry.field(kContextLatents);
  HostMemory memory(ctx);
  std::vector<ReadSource> sources;
  std::int64_t rows = 1, count = 0;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Tensor latent = list.item(i).as<Tensor>();
    const Shape shape = as_video(latent.shape());
    if (!is_source(shape, format.channels))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "source " + std::to_string(i + 1) +
                      " of the conditioning's 'context_latents' is " + shape_text(latent.shape()) +
                      ", the model reads (batch, " + std::to_string(format.channels) +
                      ", frames, height, width). Encode it with the autoencoder of this model.");
    sources.push_back({shape, std::pmr::vector<float>(std::size_t(latent.count()), &memory)});
    read_to<float>(ctx, latent.dtype() == HEDDLE_F32 ? latent : ops::cast(ctx, latent, HEDDLE_F32),
                   sources.back().values);
    rows = std::max(rows, fitted_rows(shape[0], items));
    count += tokens_in(shape);
  }
  const Shape tokens{rows, count, kCells * format.channels};
  std::pmr::vector<float> packed(
      std::size_t(checked_product({tokens[0], tokens[1], tokens[2]}, "what the model looks at")),
      &memory);
  float* to = packed.data();
  for (std::int64_t row = 0; row < rows; ++row)
    for (const ReadSource& source : sources)
      to = pack_source(source, row % source.shape[0], format, to);
  const Tensor places = ctx.make_host({count, kPlaceNumbers}, HEDDLE_F32);
  float* place = places.data<float>();
  for (std::size_t k = 0; k < sources.size(); ++k)
    each_token(sources[k].shape, [&](std::int64_t t, std::int64_t y, std::int64_t x) {
      for (const std::int64_t number : {t, y, x, std::int64_t(k) + 1}) *place++ = float(number);
    });
  return {ctx.upload(tokens, HEDDLE_F32, packed.data()), places};
}

std::optional<SourceShapes> source_shapes(const blocks::EntryShapes& entry, const Value& settings,
                                          std::int64_t items) {
  const auto channels = settings.get<std::int64_t>("latent_channels", 0);
  std::int64_t rows = 1, count = 0;
  for (const heddle_tensor_info& info : entry.sources) {
    const Shape shape = as_video(blocks::shape_of(info));
    if (!is_source(shape, channels)) return {};
    rows = std::max(rows, fitted_rows(shape[0], items));
    count += tokens_in(shape);
  }
  return SourceShapes{{rows, count, kCells * channels}, {count, kPlaceNumbers}};
}

void refuse_sources(const Value& entry, const Value& model) {
  if (entry.field(kContextLatents).count() == 0 || model_takes(model, kSources) ||
      model_takes(model, kHint))  // a ControlNet sees the video that is drawn alone
    return;
  throw Error(HEDDLE_UNSUPPORTED,
              "the conditioning has videos or pictures to look at (BerniniConditioning), which "
              "this model does not. Use a model of Bernini, or leave that node out.");
}

}  // namespace heddle::samplers
