// plugins/denoisers/hunyuan.h - the family of HunyuanVideo 1.0 and 1.5: which checkpoints are
// theirs, and the graph of blocks they make.
//
// Inputs   x         (B, C, F, H, W)   per step        the latent of F frames, scaled; any float
//          timestep  (N)               precomputed     noise level in [0, 1000], f32
//          target_timestep (N)         precomputed     only in models of two timesteps (MeanFlow):
//                                                      the level that the step goes to, f32
//          context   (1|B, T, W)       loop-invariant  the language model's states, without padding
//          byt5      (1|B, G, W')      loop-invariant  only of 1.5, optional: byT5's states of what
//                                                      is written in the video, without padding
//          vision    (1|B, V, U)       loop-invariant  only of 1.5, optional: SigLIP's states
//          concat    (1|B, C', F, H, W) loop-invariant only where more channels go in than come
//                                                      out: a latent and a mask of what is given;
//                                                      of super resolution a latent, a mask, the
//                                                      latent that is made sharper, and ones
//          y         (1|B, P)          loop-invariant  only of 1.0: CLIP's pooled state
//          guidance  (1|B)             loop-invariant  only of 1.0, f32, optional, 6 when absent
//          first_timestep (1)          loop-invariant  only of 1.0, f32, optional: the level of the
//                                                      first frame, which is given
//          reference (1|B, C, F', H', W')  loop-invariant  only of 1.0 without concat, optional: a
//                                                      latent, in the model's units, whose tokens
//                                                      the video looks at; not with first_timestep
// Output   out       (B, C, F, H, W)   velocity (noise - video), in the latent's element type
//
// Blocks   embed.vector, embed.text_vector, embed.rope, embed.text, embed.latent,
//          refiner.<i>.modulation, refiner.<i>.block, double.<i>.modulation, double.<i>.block,
//          final.modulation, final.block; of models with a reference embed.reference,
//          embed.reference_join; of 1.5 embed.glyphs, embed.vision, embed.join; of 1.0
//          join, single.<i>.modulation, single.<i>.block
//
// Every dimension is read off the tensors; the config may give the rotary axes. Settings: see
// build(). Stateless, any thread.
#pragma once

#include "hunyuan_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Hunyuan {
  static constexpr Family family{"hunyuan-video", "diffusion_model", 1,
                                 "HunyuanVideo 1.0 and 1.5: video transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
