// plugins/vae/vocoder.h - LTX 2's vocoder: it makes sound of a spectrum on a mel scale. That of LTX
// 2.3 has two stages (vocoder_stages.h).
//
// "vocoder"  input mel (B, C, T, M) loop-invariant, of the audio autoencoder (audio_vae.h) ->
//            waveform (B, 2, n T) f32 in [-1, 1]
//
// Settings: family, sample_rate, upsample (n). Stateless, any thread.
#pragma once

#include "vocoder_band_blocks.h"
#include "vocoder_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct Vocoder {
  static constexpr Family family{"ltx2_vocoder", "vocoder", 1, "Vocoder of LTX 2"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
