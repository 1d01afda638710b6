// plugins/denoisers/minimax.h - the family of MiniMax H3 and FastH3: which checkpoints are its own,
// and the graph of blocks they make (minimax_blocks.h).
//
// Inputs   x            (B, C, F, H, W)  per step        the latent of F frames, sides even; any
//                                                        float type
//          audio        (B, C', 2, L)    per step        that of their sound, of two loudspeakers
//          timestep     (N)              precomputed     noise level of the video in [0, 1], f32
//          sound_timestep (N)            precomputed     that of the sound
//          sound_carry  (N)              precomputed     what makes of the audio that is given
//                                                        the one at its level
//          sound_kept, sound_gain (N)    precomputed     parts of the audio that is given, and of
//                                                        noise - clean, in audio_out
//          context      (1|B, T, W)      loop-invariant  the text's states
//          picture_rows (T, 1)           loop-invariant  optional: 1 at tokens of the text that
//                                                        are of a picture, else 0, f32
//          references   (1|B, R, 4 C)    loop-invariant  optional: tokens of pictures and videos
//          reference_positions (R, 3)    loop-invariant  with it: their times, counted from the
//                                                        text's end, rows and columns, f32
//          sound_references (1|B, S, C'), sound_reference_positions (S, 3)  optional: of sound
//          reference_pools, sound_reference_pools  loop-invariant  optional, of sparse attention:
//                                                        MinimaxCubes
//          video_heads, sound_heads (N, n)  precomputed  of files with n output heads: what each
//                                                        counts (plugins/samplers/parallel_heads.h)
//          media_start  (1)              loop-invariant  optional: the time, counted from the
//                                                        text's end, at which the video begins
//          patch.<n>.hint  loop-invariant  optional: of model patches (minimax_patch.h)
// Outputs  out (B, C, F, H, W): noise - clean; audio_out (B, C', 2, L): sound_kept times
//          audio plus sound_gain times the same of the sound
//
// Names: those of ComfyUI's single files, also with less weights ("adaln_t_table"), or diffusers'
// (minimax_names.h). Sizes are read off the tensors, heads off the norms of queries; of the config
// "rope_freq_dim", "rope_theta", "norm_eps" count. The publishers' own shards have queries, keys
// and values head by head under the names of single files, which no tensor tells: not read.
// Attention is dense, as in ComfyUI, but where the config tells of sparse attention
// (plugins/blocks/sparse_config.h), which reads the gates of FastH3, "to_gate_compress". Settings:
// see add_minimax_settings(). Stateless, any thread.
#pragma once

#include "minimax_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Minimax {
  static constexpr Family family{
      "minimax-h3", "diffusion_model", 1,
      "MiniMax H3: transformer of videos and their sound with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
