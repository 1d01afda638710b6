// plugins/vae/vocoder_stages.h - LTX 2.3's vocoder, of two stages: the first makes sound of a
// spectrum, the second what it lacks at three times the rate, of that sound's spectrum. Both are
// filters and upsamplings with periodic activations, as those of MiniMax H3's sound
// (h3_sound_blocks.h). Pure; any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::vae {

bool is_vocoder_of_stages(const Checkpoint& file);
// As Vocoder::build() (vocoder.h). Throws where the file's stages do not fit each other, or their
// config.
void build_vocoder_of_stages(const Checkpoint& file, const Value& config, Blocks& graph);

}  // namespace heddle::vae
