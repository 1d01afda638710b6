// The node that measures a music for WanDancer (music_spectrum.h, music_beats.h, music_chroma.h).
// Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// Its AUDIO_ENCODER_OUTPUT is a record:
//   audio_feature       (1, T, 35) f32 on the host: of each 30th of a second how much louder the
//                       music becomes, 20 numbers of its timbre, 12 of its notes, 1 where a sound
//                       begins, 1 where a beat is
//   fps                 frames a second, such that video_frames are as long as the music, of which
//                       30 are a whole multiple
//   audio_inject_scale  as given
// Channels of the first item are averaged.
struct WanDancerEncodeAudio {
  static constexpr Info info{"WanDancerEncodeAudio",
                             1,
                             "",
                             "model/conditioning/wan/dancer",
                             "What a dance goes by: a music's sounds, notes and beats.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> audio{"audio", 0, "The music.", "AUDIO"};
  static constexpr Input<std::int64_t> video_frames{
      "video_frames", {.number = 149, .min = 1, .max = 16384, .step = 4}};
  static constexpr Input<double> audio_inject_scale{
      "audio_inject_scale", {.number = 1, .max = 10, .step = 0.01}, "How much the music counts."};
  static constexpr Output<Value> heard{"audio_encoder_output", 0, "", "AUDIO_ENCODER_OUTPUT"};
  static constexpr Output<std::string> fps_string{
      "fps_string", 0, "Frames a second in words, which the model's texts end with."};
  static constexpr auto ports =
      heddle::ports(audio, video_frames, audio_inject_scale, heard, fps_string);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
