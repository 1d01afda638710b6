// plugins/vae/autoencoder_wan_video.h - the causal autoencoders of Wan 2.1, 2.2 and Qwen-Image on
// videos. Each side goes through a video by chunks: the first is one frame, later ones are one
// frame of the latent, four of the video. What its convolutions read of earlier chunks goes from
// the outputs of one call to the inputs of the next, so memory does not grow with the number of
// frames. As these are large, a side is cut into stages, each a model of its own over the same
// weights, and only one stage's are there twice at a time. Where levels have shortcuts (Wan 2.2),
// each level is a stage. Source: AutoencoderKLWan of diffusers, which gives the same numbers.
//
// Configuration of a stage: chunk ("first" or "next"), stage (int).
// Inputs   the first stage's: z (1, C, h, w) or image (T, H, W, 3); another's: hidden (T, H, W, C')
//          kept.<n>  of later chunks: what the stage gave as kept.<n> at the chunk before
// Outputs  the last stage's: image (T, H, W, 3) f32 or mean (1, C, h, w) f32; another's: hidden;
//          kept.<n>  (2, H, W, C'), or (1, H, W, C') where frames are halved
// All inputs are loop-invariant. Settings of a stage: chunk_shapes, a record: of each input a list
// of frames, halvings (how often the pictures' sides are halved there) and channels.
// Any thread.
#pragma once

#include <heddle/model.hpp>

#include "autoencoder_wan_names.h"

namespace heddle::vae {

// Whether the side can be built for videos: its filters reach over three frames.
bool has_videos(const Checkpoint& file, const WanNames& names);

// The settings of the side's model that say so: chunk_configs, a record of two lists, "first" and
// "next", of the configurations of its stages; frame_downscale, frames of a video for each of the
// latent.
void add_video_settings(const Checkpoint& file, const WanNames& names, VaeSide side, Blocks& graph);

// Whether a configuration asks for a stage; then this builds it. Throws HEDDLE_INVALID_ARGUMENT for
// one that is not there.
bool asks_for_stage(const Value& config);
void build_stage(const Checkpoint& file, const WanNames& names, const Value& config, VaeSide side,
                 Blocks& graph);

}  // namespace heddle::vae
