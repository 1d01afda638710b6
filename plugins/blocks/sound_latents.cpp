#include "plugins/blocks/sound_latents.h"

#include <algorithm>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/sound_resample.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kStereo = 2;
constexpr double kAnySound = std::numeric_limits<double>::infinity();

}  // namespace

std::int64_t sound_rate(const Value& vae, const std::string& port) {
  const auto rate = vae.field("audio").get<std::int64_t>("sample_rate", 0);
  if (rate > 0) return rate;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              port +
                  ": this is no autoencoder of sound. Link LTXVAudioVAELoader, or VAELoader with a "
                  "file of one.");
}

bool reads_waves(const Value& vae) {
  return vae.has("audio") && !vae.field("audio").field("vocoder").is(HEDDLE_KIND_MODEL);
}

std::optional<Shape> stereo_shape(const Shape& waveform, std::int64_t from, std::int64_t to,
                                  std::int64_t most) {
  if (waveform.size() != 3 || std::ranges::count(waveform, 0) > 0 || from < 1 || to < 1) return {};
  return Shape{std::min(waveform[0], most), kStereo,
               blocks::resampled_count(waveform[2], from, to)};
}

StereoSound stereo_sound(Context& ctx, const Value& audio, const std::string& port,
                         std::int64_t rate, std::pmr::memory_resource& memory, std::int64_t most) {
  const Tensor waveform = audio.get<Tensor>("waveform", {});
  const auto from = audio.get<std::int64_t>("sample_rate", 0);
  const std::optional<Shape> shape =
      waveform ? stereo_shape(waveform.shape(), from, rate, most) : std::nullopt;
  if (!shape)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                port +
                    ": this is no sound of (batch, channels, points) with a sample_rate. Link an "
                    "AUDIO, such as that of LoadAudio.");
  const std::int64_t channels = waveform.size(1), length = waveform.size(2), made = (*shape)[2];
  std::pmr::vector<float> points(std::size_t(waveform.count()), &memory);
  read_to<float>(ctx, waveform, points);
  StereoSound sound{
      *shape,
      std::pmr::vector<float>(
          std::size_t(checked_product({(*shape)[0], kStereo, made}, "the sound")), &memory)};
  for (std::int64_t item = 0; item < (*shape)[0]; ++item)
    for (std::int64_t side = 0; side < kStereo; ++side) {
      const std::int64_t first = (item * channels + std::min(side, channels - 1)) * length;
      blocks::resample_sound(
          std::span<const float>(points).subspan(std::size_t(first), std::size_t(length)), from,
          rate,
          std::span<float>(sound.points)
              .subspan(std::size_t((item * kStereo + side) * made), std::size_t(made)));
    }
  return sound;
}

Tensor sound_statistics(Context& ctx, const Value& vae, const char* key) {
  const Value list = vae.field("audio").field(key);
  if (list.count() == 0) return {};
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    numbers.push_back(float(list.item(i).as<double>()));
  return ctx.upload({1, std::int64_t(numbers.size()), 1, 1}, HEDDLE_F32, numbers.data());
}

Tensor encoded_waves(Context& ctx, const Value& vae, std::span<const float> points,
                     const Shape& shape) {
  const Tensor waveform = ctx.upload(shape, HEDDLE_F32, points.data()),
               mean = call_model(ctx, vae.field("encoder"),
                                 Record().set("waveform", value_of(waveform)).value())
                          .get<Tensor>("mean", {});
  const Tensor means = sound_statistics(ctx, vae, "latent_means"),
               deviations = sound_statistics(ctx, vae, "latent_deviations");
  if (!means || !deviations) return mean;
  // (z - mean) / deviation. There is no division: 1 / d is 1 / sqrt(d * d), d > 0.
  const Tensor inverse = ops::rsqrt(ctx, ops::mul(ctx, deviations, deviations)),
               offset = ops::scale_clamp(ctx, means, {-1, 0, -kAnySound, kAnySound});
  return ops::mul(ctx, ops::add(ctx, mean, offset), inverse);
}

std::optional<Shape> tell_encoded_waves(Infer& question, const Value& vae, const Shape& sound) {
  const Value encoder = vae.field("encoder");
  if (!encoder.is(HEDDLE_KIND_MODEL) || !reads_waves(vae)) return {};
  const Value settings = model_settings(encoder);
  const auto hop = settings.get<std::int64_t>("hop", 0),
             channels = settings.get<std::int64_t>("latent_channels", 0);
  if (hop < 1 || channels < 1) return {};
  question.call(encoder, {{.constants = {{"waveform", HEDDLE_F32, sound}}, .steps = {}}});
  return Shape{sound[0], channels, sound[1], (sound[2] + hop - 1) / hop};
}

}  // namespace heddle::vae
