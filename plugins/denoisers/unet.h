// plugins/denoisers/unet.h - the family of the UNets of Stable Diffusion 1.x and 2.x, of its x4
// upscaler and of Lotus, and of SDXL (base, refiner, and smaller ones of the same blocks): which
// checkpoints are theirs, and the graph of blocks they make.
//
// Inputs   x         (B, 4, H, W)      per step        the latent, scaled; any float
//          timestep  (N)               precomputed     noise level in [0, 999], f32
//          context   (1|B, T, 768...)  loop-invariant  the text's states; Stable Zero123: those of
//                                      a picture, with four numbers about a view, or without
//          y         (1|B, 1280)       loop-invariant  SDXL: the pooled text; unCLIP: a picture's
//                                      embedding, and as many numbers about its noise; Lotus: 4
//                                      numbers about what it is to show
//          level     (1)               loop-invariant  x4 upscaler: how much noise the picture
//                                      has, from 0 to 350, i32
//          sizes     (1|B, n)          loop-invariant  SDXL: n numbers about the picture, in its
//                                      pixels: height, width, top, left, then target height and
//                                      width (base), or an aesthetic score (refiner)
//          concat    (1|B, C, H, W)    loop-invariant  models for inpainting: a mask and a latent
//                                      without what it covers (5); pix2pix: a picture's latent
//                                      (4); x4 upscaler: a picture, -1 to 1 (3)
//          adapter.<i>.tokens and so on  loop-invariant, optional: of pictures (unet_adapters.h)
//          control.output.<i>, control.middle, control.input.<i>  per step, optional: residuals of
//                                      models beside it (unet_control.h)
// Output   out       (B, 4, H, W)      noise, velocity, or (Lotus) the latent that it shows, in the
//                                      latent's element type
//          heatmaps  (B, 2 H, 2 W, K)  instead, of the part "heatmaps" of SDPose (unet_heatmaps.h);
//                                      setting keypoints (K)
//
// Blocks   embed.vector, input.0.conv, then of each number of the original names
//          input.<i>.{modulation,resnet}, input.<i>.tokens.in,
//          input.<i>.transformer.<k>.{context,block}, input.<i>.picture.out, of the x4
//          upscaler input.<i>.transformer.<k>.{first.context,first},
//          input.<i>.smaller.conv, middle.<i> and output.<i> likewise, output.<i>.larger.conv,
//          final.conv
//
// Channels, depths and widths are read off the tensors. Heads: 8 where the transformers'
// projections are filters (SD 1.x) and in the x4 upscaler, else 64 wide, as published. Stateless,
// any thread.
#pragma once

#include <heddle/model.hpp>

#include "control.h"
#include "unet_blocks.h"
#include "unet_control.h"

namespace heddle::denoisers {

struct Unet {
  static constexpr Family family{"unet", "diffusion_model", 1,
                                 "UNets of Stable Diffusion 1.x, 2.x and SDXL"};
  static int match(const Checkpoint& file, const Value& config);
  // config, where a checkpoint has such marks beside the model: v_pred, ztsnr, edm_mean (bools),
  // edm_vpred.sigma_max, edm_vpred.sigma_min (floats). joined_control, a text: the file of such a
  // ControlNet (unet_lora_control.h) is joined to the model's under this prefix, and its graph is
  // made; control_difference, a bool. unet_patches, a list (unet_patches.h). heatmaps, a bool: that
  // part.
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

// Their ControlNets, of the same inputs but "concat" and with a "hint" (1|B, 3, 8 H, 8 W): all its
// outputs are residuals. One without transformers reads no text. config: averages, a bool:
// residuals are means over their pixels.
struct UnetControl {
  static constexpr Family family{"unet-control", kControlRole, 1,
                                 "ControlNets of Stable Diffusion 1.x, 2.x and SDXL"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
