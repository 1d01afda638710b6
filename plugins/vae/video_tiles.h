// Videos through an autoencoder by overlapping tiles of frames, rows and columns, as ComfyUI's
// tiled decode and encode of videos: each tile is a video of its own, whose first frame is coded by
// itself, chunk by chunk or, where the autoencoder has no stages for these, at once; a tile counts
// less towards its ends, and the weighted sum is divided by the sum of the weights. A side that a
// tile covers is not divided. Put together in host memory, in f32. One call's thread, but for what
// is told before a run.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/autoencoder.h"

namespace heddle::vae {

// As nodes are asked for them: sides in pixels, lengths in frames.
struct VideoTiling {
  std::int64_t side = 0, overlap = 0, length = 0, length_overlap = 0;
  // Tiles of one size, as few as `side` allows, that overlap by `overlap` at least: kernels of a
  // shape are prepared once. Otherwise they lie as ComfyUI's, the last of a side smaller.
  bool is_even = false;
};

// As decoded_frames(), encoded_frames() (video_chunks.h) and what is told of them. Where the
// overlap leaves no step from one tile to the next, a run throws and nothing is told. Frames arrive
// when all tiles that have a share of them are there.
Tensor decoded_frames_in_tiles(Context& ctx, const Value& vae, const Value& latent,
                               const VideoTiling& tiling, heddle_port_index output);
void tell_decoded_tiles(Infer& question, const Value& vae, const Shape& samples,
                        const Autoencoder& autoencoder, const VideoTiling& tiling);
Tensor encoded_frames_in_tiles(Context& ctx, const Value& vae, const Tensor& pictures,
                               const Autoencoder& autoencoder, const VideoTiling& tiling);
void tell_encoded_tiles(Infer& question, const Value& vae, const Shape& pictures,
                        const Autoencoder& autoencoder, const VideoTiling& tiling);
// Tells of the largest tile's calls, as those that are made where there is no room for whole
// frames.
void tell_least_decoded_tile(Infer& question, const Value& vae, const Shape& samples,
                             const Autoencoder& autoencoder, const VideoTiling& tiling);

}  // namespace heddle::vae
