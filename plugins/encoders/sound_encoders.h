// plugins/encoders/sound_encoders.h - encoders of sound: wav2vec 2.0 and Whisper.
//
// Wav2Vec2  sound     (B, N)     loop-invariant  points at 16 kHz; normalised, where the setting
//                                                normalises says so
// Whisper   spectrum  (B, F, C)  loop-invariant  loudness of C bands (setting bands) in F frames
//                                                (setting frames)
// Outputs   last_hidden  (B, T, D) f32  behind the last layer, normed: as hidden.<layers>
//           hidden.<i>   (B, T, D) f32  what layer i reads, 0 <= i < layers
//
// Names are transformers' (Wav2Vec2Model, WhisperModel), with whatever prefix a file puts before
// them. Source of the architectures: these, after Baevski et al. 2020 and Radford et al. 2022.
// wav2vec2: where each of the first filters has a norm of its own (large, XLSR, "stable layer
// norm"), the layers' norms stand before what they do, and sounds are normalised; else (base) the
// first filter alone has a norm, over time, and norms stand behind, as ComfyUI tells both by their
// widths. Heads are 64 wide unless a config says num_attention_heads. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

inline constexpr std::int64_t kSoundRate = 16000;

struct Wav2Vec2 {
  static constexpr Family family{"wav2vec2", "audio_encoder", 1, "wav2vec 2.0: states of a sound"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Whisper {
  static constexpr Family family{"whisper", "audio_encoder", 1,
                                 "Whisper's encoder: states of a sound's spectrum"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
