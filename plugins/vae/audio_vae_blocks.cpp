#include "audio_vae_blocks.h"

#include <limits>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr double kAudioUnbound = std::numeric_limits<double>::infinity();
// Two frames above, none below, a band on either side.
constexpr heddle_conv2d_attrs kAudioCausal{{1, 1}, {2, 1, 0, 1}};
constexpr heddle_conv2d_attrs kAudioHalving{{2, 2}, {2, 0, 0, 1}};
constexpr heddle_conv2d_attrs kAudioPoint{{1, 1}, {0, 0, 0, 0}};

Tensor audio_activated(Context& ctx, const Tensor& x, double eps) {
  const Tensor out = ops::rms_norm(ctx, x, {}, eps);
  ops::activate_into(ctx, out, HEDDLE_ACT_SILU, out);
  return out;
}

// (B, C, T, M) -> (B, T, M, C), and back; f32.
Tensor audio_cells(Context& ctx, const Tensor& x) {
  return ops::cast(ctx, x.permute({0, 2, 3, 1}), HEDDLE_F32);
}
Tensor audio_planes(Context& ctx, const Tensor& x) {
  return ops::cast(ctx, x.permute({0, 3, 1, 2}), HEDDLE_F32);
}

// Numbers of each channel and band (C M) for (B, T, M, C), f32.
Tensor by_band(Context& ctx, const Tensor& numbers, std::int64_t channels, std::int64_t bands) {
  if (numbers.count() != channels * bands)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the audio autoencoder knows the units of " + std::to_string(numbers.count()) +
                    " numbers of a frame, the latent has " + std::to_string(channels) +
                    " channels of " + std::to_string(bands) +
                    " bands. Load the autoencoder that belongs to the model.");
  return ops::cast(ctx, numbers.reshape({1, channels, 1, bands}).permute({0, 2, 3, 1}), HEDDLE_F32);
}

}  // namespace

void AudioLatentIn::execute(Context& ctx) {
  const Tensor cells = audio_cells(ctx, ctx[z]);
  if (cells.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the audio autoencoder decodes latents of " +
                                             std::to_string(ctx[conv].size(1)) + " channels, got " +
                                             std::to_string(cells.size(3)) +
                                             ". Load the autoencoder that belongs to the model.");
  const Tensor scaled =
      ops::mul(ctx, cells, by_band(ctx, ctx[deviation], cells.size(3), cells.size(2)));
  const Tensor raw = ctx.make(cells.shape());
  ops::add_into(ctx, scaled, by_band(ctx, ctx[mean], cells.size(3), cells.size(2)), raw);
  ctx[out] = ops::conv2d(ctx, raw, ctx[conv], ctx[bias], kAudioCausal);
}

void AudioMelIn::execute(Context& ctx) {
  const Tensor given = ctx[mel];
  const Tensor cells = ops::cast(ctx, given.permute({0, 2, 3, 1}), ctx.compute());
  ctx[out] = ops::conv2d(ctx, cells, ctx[conv], ctx[bias], kAudioCausal);
}

void AudioResnet::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor middle =
      ops::conv2d(ctx, audio_activated(ctx, x, ctx[eps]), ctx[conv1], ctx[bias1], kAudioCausal);
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kAudioPoint) : x;
  const Tensor made = ctx.make(middle.shape());
  ops::conv2d_into(ctx, audio_activated(ctx, middle, ctx[eps]), ctx[conv2], ctx[bias2],
                   kAudioCausal, base, made);
  ctx[out] = made;
}

void AudioUpsample::execute(Context& ctx) {
  const Tensor larger = ops::upsample_nearest(ctx, ctx[hidden], 2);
  const Tensor made = ops::conv2d(ctx, larger, ctx[conv], ctx[bias], kAudioCausal);
  ctx[out] = ops::contiguous(ctx, made.slice(1, 1, made.size(1)));
}

void AudioDownsample::execute(Context& ctx) {
  ctx[out] = ops::conv2d(ctx, ctx[hidden], ctx[conv], ctx[bias], kAudioHalving);
}

void AudioMelOut::execute(Context& ctx) {
  ctx[mel] = audio_planes(ctx, blocks::wide_conv2d(ctx, audio_activated(ctx, ctx[hidden], ctx[eps]),
                                                   ctx[conv], ctx[bias], kAudioCausal));
}

void AudioLatentOut::execute(Context& ctx) {
  const Tensor moments = blocks::wide_conv2d(ctx, audio_activated(ctx, ctx[hidden], ctx[eps]),
                                             ctx[conv], ctx[bias], kAudioCausal);
  const std::int64_t bands = moments.size(2), channels = ctx[mean].count() / bands;
  const Tensor raw = ops::contiguous(ctx, moments.slice(3, 0, channels));
  // (z - mean) / deviation. There is no division: 1 / d is 1 / sqrt(d * d), d > 0.
  const Tensor deviations = by_band(ctx, ctx[deviation], channels, bands),
               inverse = ops::rsqrt(ctx, ops::mul(ctx, deviations, deviations)),
               offset = ops::scale_clamp(ctx, by_band(ctx, ctx[mean], channels, bands),
                                         {-1, 0, -kAudioUnbound, kAudioUnbound});
  ctx[out] = audio_planes(ctx, ops::mul(ctx, ops::add(ctx, raw, offset), inverse));
}

}  // namespace heddle::vae
