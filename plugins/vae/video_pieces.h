// Videos through an autoencoder that has stages for pieces of them (decoder_pieces, encoder_pieces
// of a VAE, heddle/diffusion/values.h; plugins/vae/autoencoder_ltxv_builder.h): each stage takes as
// many frames as it needs, with what it kept of those before, and what it makes goes on to the next
// one at once (piece_turns.h). A device holds a few frames of each stage, whatever the video's
// length, or several devices work at pieces side by side (chunk_rounds.h); the numbers are those of
// the video as a whole. One call's thread, but for what is told before a run.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {

// Whether a video goes through the decoder by pieces: one of samples (B, C, F, h, w) with F > 1, or
// through the encoder: one of so many pictures.
bool decodes_pieces(const Value& vae, const Shape& samples);
bool encodes_pieces(const Value& vae, std::int64_t pictures);

// Frames (B T, H, W, colours) from 0 to 1, in host memory. They arrive in parts
// (heddle/parts.hpp), as the call's output of this number.
Tensor decoded_pieces(Context& ctx, const Value& vae, const Value& latent,
                      heddle_port_index output);
void tell_decoded_pieces(Infer& question, const Value& vae, const Shape& samples,
                         const Autoencoder& autoencoder);

// The means (1, C, F, h, w) of pictures (T, H, W, colours) from 0 to 1, whose sides whole cells
// cover. Those at the end that make no whole frame of the latent are left out.
Tensor encoded_pieces(Context& ctx, const Value& vae, const Tensor& pictures,
                      const Autoencoder& autoencoder);
void tell_encoded_pieces(Infer& question, const Value& vae, const Shape& pictures,
                         const Autoencoder& autoencoder);

// By pieces where the autoencoder does so, else as a whole.
Tensor mean_of_pictures(Context& ctx, const Value& vae, const Tensor& pictures,
                        const Autoencoder& autoencoder);
void tell_mean_of_pictures(Infer& question, const Value& vae, const Shape& pictures,
                           const Autoencoder& autoencoder);

}  // namespace heddle::vae
