// Makes VAE values (heddle/diffusion/values.h) and tells a denoiser what its latents are. One
// call's thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::loaders {

// From the tensors of one autoencoder, named without a prefix; config may be empty. A file without
// an encoder gives a VAE that decodes.
Value vae_value(Context& ctx, const Checkpoint& file, const Value& config);

// Of TAESD's two files, where `encoder` may be absent; scale and shift are those of the latents
// that it was trained on.
Value taesd_value(Context& ctx, const Checkpoint& decoder, const Checkpoint* encoder, double scale,
                  double shift);

// Of "pixel_space": three channels, a cell for each pixel, from -1 to 1. It has no model.
Value pixel_space();

// The model with the latent constants of that VAE in its settings.
Value with_latents_of(const Value& model, const Value& vae);

}  // namespace heddle::loaders
