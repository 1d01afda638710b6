// plugins/denoisers/wan.h - the family of Wan 2.1 and 2.2: which checkpoints are theirs, and the
// graph of blocks they make.
//
// Inputs   x         (B, C, F, H, W)    per step        the latent of F frames, scaled; any float
//          timestep  (N)                precomputed     noise level in [0, 1000], f32
//          context   (1|B, T, W)        loop-invariant  the text encoder's states, padded as it
//          says concat    (1|B, C', F, H, W) loop-invariant  only where more channels go in than
//          come out vision    (1|B, V, U)        loop-invariant  optional, of models that are shown
//          pictures:
//                                                       the vision model's states
//          frame_noise (F)              loop-invariant  only of the 5B, optional: what each frame
//                                                       has of the level; absent: all of it
//          vace      (1|B, n K, F, H, W) loop-invariant  only of VACE: of n contexts, each of K
//                                                       channels, latents and masks; in the
//                                                       model's units
//          vace_strength (n)            loop-invariant  only of VACE: how much each counts, f32
//          camera    (1|B, K, F, H, W)  loop-invariant  only of Fun camera, optional: of each cell
//                                                       the rays of its pixels and frames
//          reference (1|B, C, 1, H, W)  loop-invariant  only of Fun control with a reference
//                                                       picture, optional: its latent, which is a
//                                                       frame before the video's
//          pose      (1|B, C, F - 1, H, W)  loop-invariant  only of Animate, optional: a latent of
//                                       poses, in the model's units
//          face      (1|B, 3, S, E, E)  loop-invariant  only of Animate, optional: pictures of a
//                                       face, from -1 to 1; E is the setting face_side
//          pose, pose_context, pose_vision  loop-invariant  only where the config says
//                                       follows_poses (Animate 2), optional: a latent of poses
//                                       (1|B, C, F', H, W), in the model's units, and what goes
//                                       with it as context and vision go with x
//          heard     (1|B, S, K, E)     loop-invariant  only of S2V, optional: states of a
//                                       sound, S of K numbers, the settings heard_states and
//                                       heard_width, for each of E moments, four in a frame
//          reference, motion, followed  loop-invariant  only of S2V, optional, in the model's
//                                       units: (1|B, C, 1, H, W), a picture; (1|B, C, F', H, W),
//                                       the frames before the video; (1|B, C, F, H, W), a video
//                                       that is followed
//          heard     (1|B, F, M, S, E)  loop-invariant  only of HuMo, optional: M moments of S
//                                       states of a sound for each frame; reference as of S2V
//          reference (1|B, C, R, H, W), half_pose (1|B, C, F', H', W')  loop-invariant  only of
//                                       SCAIL 2, optional, in the model's units: reference
//                                       pictures, each a frame, and poses, of half the sides
//          reference_masks (1|B, R + F, K, H, W), pose_masks (1|B, F', K, H', W')  loop-invariant
//                                       only of SCAIL 2, optional: channels of coloured masks, the
//                                       setting mask_channels, of the references, then the video,
//                                       and of the poses
//          apart     (1)                loop-invariant  only of SCAIL 2, optional: the references
//                                       lie apart from the video (wan_scail_blocks.h)
//          sources (1|B, T, 4 C), source_places (T, 4)  loop-invariant  of models that draw from
//                                       texts alone, optional: tokens of videos and pictures that
//                                       they look at (wan_sources_blocks.h)
//          kept.<i>  (B, P, 2 D)     loop-invariant  only of a causal model (wan_causal.h),
//                                       optional: keys and values of layer i for P tokens of the
//                                       frames before these; P may be 0
//          patch.0.hint, patch.0.regions  loop-invariant  only with a model patch (wan_talk.h)
//          music, music_strength, reference_vision, frame_places  loop-invariant  only of
//                                       WanDancer, optional: wan_dancer.h
// Output   out       (B, C, F, H, W)    velocity (noise - video), in the latent's element type
//          kept.<i>  (B, L, 2 D)     only of a causal model: those of its own tokens; none where
//                                    it is given no kept.<i>
//
// Blocks   embed.vector, embed.modulation, embed.rope, embed.text, embed.vision, embed.latent,
//          embed.camera, embed.reference, embed.fun_join of Fun;
//          layer.<i>.modulation, layer.<i>.text, layer.<i>.vision, layer.<i>.block,
//          final.modulation, final.block; of VACE embed.vace, embed.vace_start,
//          vace.<k>.modulation, vace.<k>.text, vace.<k>.block, vace.<k>.add; of Animate
//          embed.pose, embed.motion, embed.face, face.<k>.keys, face.<k>.add; of Animate 2
//          embed.pose_vector, embed.pose_modulation, embed.pose_text, embed.pose_vision,
//          embed.pose, embed.pose_rope, pose.<i>.modulation, pose.<i>.text, pose.<i>.vision,
//          pose.<i>.block; of S2V embed.followed, embed.reference, embed.motion, embed.heard,
//          embed.join, sound.<k>.shift, sound.<k>.keys, sound.<k>.add; of HuMo
//          embed.reference, embed.heard, embed.join, layer.<i>.sound; of SCAIL 2
//          embed.reference, embed.pose, embed.reference_masks, embed.pose_masks, embed.join; of
//          sources embed.sources, embed.join; of a model patch patch.0.hint, patch.0.regions
//
// Every dimension is read off the tensors; heads have 128 numbers, as in all that were published,
// unless a config says attention_head_dim. Settings: see build(). Stateless, any thread.
#pragma once

#include "wan_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Wan {
  static constexpr Family family{"wan", "diffusion_model", 1,
                                 "Wan 2.1 and 2.2: video transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
