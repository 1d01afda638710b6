// How large latents are. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct GetLatentSize {
  static constexpr Info info{"GetLatentSize",
                             1,
                             "Get Image/Video Latent Size",
                             "model/latent",
                             "How large a latent is, in cells, and how many there are; of pictures "
                             "with their sound, the pictures.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_PASS, "", "LATENT"};
  static constexpr Output<std::int64_t> width{"width"};
  static constexpr Output<std::int64_t> height{"height"};
  static constexpr Output<std::int64_t> frames{"frames"};
  static constexpr Output<std::int64_t> batch_size{"batch_size"};
  static constexpr auto ports = heddle::ports(latent, width, height, frames, batch_size);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct GetAudioLatentSize {
  static constexpr Info info{"GetAudioLatentSize",
                             1,
                             "Get Audio Latent Size",
                             "model/latent",
                             "How long a latent of sound is, in its cells, of how many channels of "
                             "sound it is, and how many there are; of pictures with their sound, "
                             "the sound. Latents of spectra count as one channel.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_PASS, "", "LATENT"};
  static constexpr Output<std::int64_t> length{"length"};
  static constexpr Output<std::int64_t> audio_channels{"audio_channels"};
  static constexpr Output<std::int64_t> batch_size{"batch_size"};
  static constexpr auto ports = heddle::ports(latent, length, audio_channels, batch_size);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
