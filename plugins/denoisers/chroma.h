// plugins/denoisers/chroma.h - the family Chroma: FLUX.1's blocks without pooled text, whose
// modulations one network makes (chroma_blocks.h). Source: lodestones' published model.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float type
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          context   (1|B, T, Dt)      loop-invariant  T5's last hidden state. As in ComfyUI it has
//                                                      no padding, and all of it is seen; diffusers
//                                                      pads it and masks all but one of the padding
//          guidance  (1|B)             loop-invariant  f32, optional, 0 when absent: what a model
//                                                      of its own was trained with; diffusers has 0
//          nag, positions              loop-invariant  optional, as flux.h has them
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//
// Blocks   approximator.in, approximator.layer.<i>, approximator.out, embed.rope, embed.text,
//          embed.image, double.<i>.img_modulation, double.<i>.txt_modulation, double.<i>.block,
//          join, single.<i>.modulation, single.<i>.block, final.modulation, final.block
//
// Every dimension is read off the tensors; the config gives the rotary axes and the depth when
// there is one. Chroma Radiance is built by this family, too: it draws pixels (radiance.h), has no
// input "nag", and blocks nerf.waves, nerf.in, nerf.<i>.block, nerf.level and nerf.final in the
// place of final. Stateless, any thread.
#pragma once

#include "chroma_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Chroma {
  static constexpr Family family{
      "chroma", "diffusion_model", 1,
      "Chroma: FLUX.1's transformer with approximated modulations and T5 alone"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
