// Videos through an autoencoder that decodes them at once: one whose decoder has the setting
// frame_downscale, and which has no stages for chunks. Where it has some for pieces, these give the
// same numbers. One call's thread, but for what is told
// before a run.
#pragma once

#include <heddle/node.hpp>

#include <optional>

#include "plugins/blocks/autoencoder.h"

namespace heddle::vae {

// Whether a side of an autoencoder codes videos at once: it changes the number of frames, and has
// no stages for chunks.
bool codes_whole_videos(const Value& side, bool has_chunks);

// Of samples (B, C, F, h, w): frames (B T, H, W, colours), T frames of a video for F of the latent,
// the first of which is a single one. None where the autoencoder does not decode them so.
std::optional<Shape> whole_video_shape(const Shape& samples, const Value& vae,
                                       const Autoencoder& autoencoder);

// These frames, from 0 to 1, the videos of a batch one after another; an empty tensor where there
// are none. Throws where the channels are not the autoencoder's. By pieces they arrive in parts, as
// the call's output of this number.
Tensor decoded_whole_video(Context& ctx, const Value& vae, const Value& latent,
                           heddle_port_index output);

}  // namespace heddle::vae
