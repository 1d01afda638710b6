#include "plugins/vae/ltxv_latents.h"

#include <string>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

// Every factor-th row and column of x (B, C, F, h, w), without copying.
Tensor every(const Tensor& x, std::int64_t factor) {
  heddle_tensor_info some = x.info();
  for (const int axis : {3, 4}) {
    some.shape[axis] /= factor;
    some.stride[axis] *= factor;
  }
  return x.view(some, 0);
}

}  // namespace

Tensor video_samples(const Value& latent) {
  const Value samples = latent.field("samples");
  if (samples.is(HEDDLE_KIND_LIST))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: this one is of pictures and sound. Link the pictures' latent "
                "(LTXVSeparateAVLatent), and join them again behind this node.");
  if (!samples.is(HEDDLE_KIND_TENSOR) || samples.as<Tensor>().rank() != kVideoAxes)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: its samples are not (batch, channels, frames, height, width). Link a "
                "latent of a video, such as that of EmptyLTXVLatentVideo.");
  return samples.as<Tensor>();
}

Shape guide_mask_shape(const Shape& samples) { return {samples[0], 1, samples[2], 1, 1}; }

Tensor guide_mask_of(Context& ctx, const Value& latent, const Shape& samples) {
  const Value given = latent.field("noise_mask");
  if (!given || given.is(HEDDLE_KIND_NONE)) {
    const Tensor mask = ctx.make(guide_mask_shape(samples), HEDDLE_F32);
    ops::fill(ctx, mask, 1);
    return mask;
  }
  const Tensor mask = given.as<Tensor>();
  if (mask.rank() != kVideoAxes || mask.size(2) != samples[2])
    throw Error(HEDDLE_UNSUPPORTED,
                "latent: its noise mask is not told frame by frame, as (batch, 1, " +
                    std::to_string(samples[2]) +
                    ", height, width). Set it behind the nodes that add pictures.");
  return mask;
}

Tensor longer(Context& ctx, const Tensor& x, std::int64_t more) {
  Shape shape = x.shape();
  shape[2] += more;
  const Tensor made = ctx.make(shape, HEDDLE_F32);
  ops::copy_into(ctx, x, made.slice(2, 0, x.size(2)));
  return made;
}

void check_encoded(const Tensor& encoded, const Tensor& samples, std::int64_t factor) {
  const std::int64_t channels = samples.size(1), rows = samples.size(3) / factor,
                     columns = samples.size(4) / factor;
  if (encoded.size(1) != channels || encoded.size(3) != rows || encoded.size(4) != columns)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: it encodes pictures to " + std::to_string(encoded.size(1)) + " channels of " +
                    std::to_string(encoded.size(4)) + " x " + std::to_string(encoded.size(3)) +
                    ", for the latent they have to be " + std::to_string(channels) + " of " +
                    std::to_string(columns) + " x " + std::to_string(rows) +
                    ". Load the autoencoder that belongs to the model.");
}

void put_frames(Context& ctx, const Tensor& frames, const Tensor& to, std::int64_t at,
                std::int64_t factor) {
  for (std::int64_t i = 0; i < to.size(0); ++i)
    ops::copy_into(ctx, frames,
                   every(to.slice(0, i, i + 1).slice(2, at, at + frames.size(2)), factor));
}

blocks::GridSize pixels_of(const Tensor& samples, const Autoencoder& autoencoder,
                           std::int64_t factor) {
  return {checked_product({samples.size(3) / factor, autoencoder.downscale}, "the height"),
          checked_product({samples.size(4) / factor, autoencoder.downscale}, "the width")};
}

Value joined_latent(const Value& latent, const Value& encoded, const Tensor& samples,
                    const Tensor& mask) {
  Record made(latent);
  for (std::uint32_t i = 0; i < encoded.count(); ++i) made.set(encoded.key(i), encoded.item(i));
  return made.set("samples", value_of(samples)).set("noise_mask", value_of(mask)).value();
}

std::optional<Shape> told_video(const Infer& question, const Input<Value>& latent) {
  auto shape = question.shape(latent, "samples");
  return shape && shape->size() == std::size_t(kVideoAxes) ? shape : std::nullopt;
}
Shape told_mask(const Infer& question, const Input<Value>& latent, const Shape& samples) {
  return question.shape(latent, "noise_mask").value_or(guide_mask_shape(samples));
}

}  // namespace heddle::vae
