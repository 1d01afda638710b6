#include "sound_references.h"

#include <cmath>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "host_latent.h"
#include "plugins/blocks/minimax_latents.h"

namespace heddle::samplers {
namespace {

constexpr std::int64_t kLoudspeakers = 2;

// (1, channels, 2, length), of the channels that are drawn.
bool is_heard(const Shape& samples, const std::vector<Shape>& parts) {
  return parts.size() == 2 && samples.size() == 4 && samples[0] == 1 && samples[1] == parts[1][1] &&
         samples[2] == kLoudspeakers && samples[3] > 0;
}

// The first and the last column of a video's tokens: its own of the record, else the drawn one's.
std::pair<double, double> columns_of(const Value& record, const Shape& video) {
  const auto side = [&](const char* field, std::int64_t drawn) {
    const std::int64_t cells = record.get<std::int64_t>(field, drawn);
    return (cells + 1) / 2 * 2;
  };
  const std::int64_t height = side(blocks::kMinimaxHeight, video[3]),
                     width = side(blocks::kMinimaxWidth, video[4]);
  const auto across = blocks::MinimaxSide::of(width, std::sqrt(double(height * width)));
  return {across.first, across.first + across.step * double(width / 2 - 1)};
}

}  // namespace

std::optional<ReferenceTokenShapes> sound_reference_shapes(const blocks::EntryShapes& entry,
                                                           const std::vector<Shape>& parts) {
  std::int64_t tokens = 0;
  for (const heddle_tensor_info& info : entry.sounds) {
    const Shape samples = blocks::shape_of(info);
    if (!is_heard(samples, parts)) return {};
    tokens += kLoudspeakers * samples[3];
  }
  return ReferenceTokenShapes{
      {1, tokens, tokens == 0 ? 0 : parts[1][1]}, {tokens, 3}, false, false};
}

ReferenceTokens sound_reference_tokens(Context& ctx, const Value& entry,
                                       const std::vector<Shape>& parts) {
  HostMemory memory(ctx);
  const Value list = entry.field(blocks::kMinimaxSounds);
  std::int64_t tokens = 0;
  std::vector<Tensor> sounds;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    sounds.push_back(list.item(i).field("samples").as<Tensor>());
    if (!is_heard(sounds.back().shape(), parts))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "a sound that the model is shown is a latent of " +
                      shape_text(sounds.back().shape()) +
                      "; it reads single ones of its own channels and two loudspeakers. Encode it "
                      "with the audio autoencoder of MiniMax H3.");
    tokens += kLoudspeakers * sounds.back().size(3);
  }
  const std::int64_t channels = parts[1][1];
  const Shape shape{1, tokens, channels};
  const Tensor packed = ctx.make_host(shape, HEDDLE_F32),
               places = ctx.make_host({tokens, 3}, HEDDLE_F32);
  float *token = packed.data<float>(), *place = places.data<float>();
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Tensor& samples = sounds[i];
    const std::int64_t length = samples.size(3);
    std::pmr::vector<float> numbers(std::size_t(samples.count()), &memory);
    const bool is_f32 = samples.dtype() == HEDDLE_F32;
    read_to<float>(ctx, is_f32 ? samples : ops::cast(ctx, samples, HEDDLE_F32), numbers);
    const double time = shown_time(list.item(i), entry);
    const auto [first, last] = columns_of(list.item(i), parts[0]);
    for (std::int64_t side = 0; side < kLoudspeakers; ++side)
      for (std::int64_t t = 0; t < length; ++t) {
        for (std::int64_t c = 0; c < channels; ++c)
          *token++ = numbers[std::size_t((c * kLoudspeakers + side) * length + t)];
        *place++ = float(time + double(t));
        *place++ = 0;
        *place++ = float(side == 0 ? first : last);
      }
  }
  return {ctx.upload(shape, HEDDLE_F32, packed.data<float>()),
          ctx.upload({tokens, 3}, HEDDLE_F32, places.data<float>()),
          {},
          {}};
}

}  // namespace heddle::samplers
