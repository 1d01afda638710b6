// plugins/denoisers/ltx2.h - the family of LTX 2, 2.3 and 2.5: which checkpoints are its own, and
// the graph of blocks they make.
//
// Inputs   x            (B, C, F, H, W)  per step        the latent of F frames; any float
//          audio        (B, C', L, K)    per step        that of their sound, of K bands
//          timestep     (N)              precomputed     noise level in [0, 1], f32
//          context      (1|B, T, W + W') loop-invariant  the states of the text for the video, then
//                                                        those for the sound, as the connectors
//                                                        (diffusers' LTX2TextConnectors) make them
//          frame_time   (1)              loop-invariant  seconds between two pictures, f32
//          frame_noise  (F'), audio_noise (R + L)
//                                        loop-invariant  optional: what each of F' equal parts of
//                                                        the video's tokens, such as each frame,
//                                                        and each frame of the sound has of the
//                                                        level; absent: all of it
//          frame_most, audio_most (1)    loop-invariant  optional: the greatest of these, by which
//                                                        the other stream is looked at
//          guide_frames (K, 2 or 3), token_rows (T), token_places (F H W), guide_weights (G)
//                                        loop-invariant  optional: of guides (LTXVAddGuide), as
//                                                        put_guides(), LtxvLatentIn, LtxvFinal and
//                                                        GuidedAttention take them
//          voice        (1|B, R, C' K)   loop-invariant  optional: R frames of another sound before
//                                                        this one (LTXVReferenceAudio), f32
// Outputs  out (B, C, F, H, W), audio_out (B, C', L, K): velocities (noise - clean)
//
// Names: original or diffusers' (ltxv_names.h). Sizes are read off the tensors, and so is what 2.3
// has: gated attentions, modulated texts, no projection of the text; and 2.5: MLPs that add
// nothing, texts modulated by tables alone, a mark on the first frame, which ComfyUI and the
// publishers' pipelines with keyframes set. Not 2.5's keyframes of its own. The rest stands in a
// config, of diffusers or of the file's metadata ("config", its record "transformer"):
// ltx2_options.h. Settings: see build(). Stateless, any thread.
#pragma once

#include "ltx2_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Ltx2 {
  static constexpr Family family{
      "ltx2", "diffusion_model", 1,
      "LTX 2: transformer of videos and their sound with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
