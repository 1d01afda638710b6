// The node that hears a sound by an encoder of sound (sound_encoders.h). Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// An AUDIO_ENCODER_OUTPUT is a record:
//   encoded_audio             (B, T, D)          the last states, f32
//   encoded_audio_all_layers  (layers + 1, B, T, D)  what each layer reads, then these, f32, on the
//                                                host
//   audio_samples             points of the sound at 16 kHz
// As ComfyUI: channels are averaged; wav2vec2 hears all of the sound, Whisper 30 seconds.
struct AudioEncoderEncode {
  static constexpr Info info{"AudioEncoderEncode", 1, "", "conditioning",
                             "What an encoder of sound hears."};
  static constexpr Input<Value> audio_encoder{"audio_encoder", 0, "Of AudioEncoderLoader.",
                                              "AUDIO_ENCODER"};
  static constexpr Input<Value> audio{"audio", 0, "The sound.", "AUDIO"};
  static constexpr Output<Value> heard{"AUDIO_ENCODER_OUTPUT", 0, "", "AUDIO_ENCODER_OUTPUT"};
  static constexpr auto ports = heddle::ports(audio_encoder, audio, heard);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
