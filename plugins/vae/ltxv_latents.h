// Latents of LTX-Video's videos and their noise masks, as nodes change them. One call's thread.
#pragma once

#include <optional>

#include <heddle/node.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {

inline constexpr std::int64_t kVideoAxes = 5;

// The samples (B, C, F, h, w) of a LATENT of a video. Throws where it is another one.
Tensor video_samples(const Value& latent);

Shape guide_mask_shape(const Shape& samples);
// The noise mask (B, 1, F, 1|h, 1|w) of samples: ones where the latent has none. Throws where it is
// not told frame by frame.
Tensor guide_mask_of(Context& ctx, const Value& latent, const Shape& samples);

// x with `more` frames behind its own, which are not written yet.
Tensor longer(Context& ctx, const Tensor& x, std::int64_t more);

// Throws where pictures are encoded to other channels or sides than those of the samples, divided
// by `factor`.
void check_encoded(const Tensor& encoded, const Tensor& samples, std::int64_t factor = 1);

// Puts frames of one video into each of a batch, from `at` on; with a factor f into every f-th
// place of a row and of a column.
void put_frames(Context& ctx, const Tensor& frames, const Tensor& to, std::int64_t at,
                std::int64_t factor = 1);

// Sides of pictures for the samples, divided by `factor`.
blocks::GridSize pixels_of(const Tensor& samples, const Autoencoder& autoencoder,
                           std::int64_t factor = 1);

// A LATENT with other samples and another mask; what is known of the encoded ones' units stays.
Value joined_latent(const Value& latent, const Value& encoded, const Tensor& samples,
                    const Tensor& mask);

// Before a run; none: not known, or no video.
std::optional<Shape> told_video(const Infer& question, const Input<Value>& latent);
Shape told_mask(const Infer& question, const Input<Value>& latent, const Shape& samples);

}  // namespace heddle::vae
