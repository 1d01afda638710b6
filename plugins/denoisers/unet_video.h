// plugins/denoisers/unet_video.h - the family of Stable Video Diffusion's UNets (SVD, SVD-XT) and
// SV3D's: the graph of a UNet for pictures (unet.h) in which blocks that see all frames follow each
// residual block and each transformer's.
//
// Inputs   x         (F, 4, H, W)     per step        the latents of a video's frames, scaled
//          timestep  (N)              precomputed     a quarter of the level's logarithm, f32
//          context   (1|F, T, 1024)   loop-invariant  what CLIP's tower saw of the picture
//          sizes     (1, 3)           loop-invariant  numbers about the video: frames a second less
//                                                     1, the motion bucket, the noise in the
//                                                     picture; of SV3D (u) the last one alone
//          y         (F, 1280)        loop-invariant  of SV3D (p): what is told of the cameras
//          concat    (1|F, C, H, W)   loop-invariant  the picture's latent, not scaled
// Output   out       (F, 4, H, W)     velocity, in the latent's element type
//
// Frames are no batch: no input is cut along them. Blocks as of unet.h, and behind these
// <stage>.time.modulation, <stage>.time.resnet, <stage>.places,
// <stage>.transformer.<k>.time.context, <stage>.transformer.<k>.time. Not AnimateDiff's modules and
// not other models of videos that have a UNet. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include "unet_video_blocks.h"

namespace heddle::denoisers {

struct UnetVideo {
  static constexpr Family family{"svd", "diffusion_model", 1, "Stable Video Diffusion's UNets"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
