// The node that tells HuMo what it draws: a person of a picture who moves with a sound. Formulas:
// ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

struct WanHuMoImageToVideo {
  static constexpr Widget kFrames{.number = 97, .min = 1, .max = 16384, .step = 4};

  static constexpr Info info{"WanHuMoImageToVideo",
                             1,
                             "",
                             "conditioning/video_models",
                             "A video of what a picture shows, which moves with a sound, by HuMo.",
                             HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", kFrames};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Value> heard{"audio_encoder_output", HEDDLE_PORT_OPTIONAL,
                                      "What whisper_large_v3 heard of the sound.",
                                      "AUDIO_ENCODER_OUTPUT"};
  static constexpr Input<Tensor> ref_image =
      wan_ports::picture("ref_image", "What the video shows; the first picture.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, heard, ref_image,
                    positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
