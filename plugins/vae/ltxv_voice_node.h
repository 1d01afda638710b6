// LTXVReferenceAudio: a voice that LTX 2 with an ID-LoRA gives to who speaks in a video. The model
// sees the voice's sound before the video's: "ref_audio" of a conditioning, a record, has it as
// tokens (B, frames, numbers).
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

namespace voice_ports {
constexpr Widget percent(double number) {
  return {.number = number, .min = 0, .max = 1, .step = 0.001, .extra = R"({"advanced": true})"};
}
}  // namespace voice_ports

struct LTXVReferenceAudio {
  static constexpr Info info{"LTXVReferenceAudio", 1, "LTXV Reference Audio (ID-LoRA)",
                             "model/conditioning/ltxv",
                             "Shows the model a voice, and draws towards what it makes of it: away "
                             "from its prediction without it, by one more call in each step."};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> reference_audio{"reference_audio", 0, "About 5 seconds of a voice.",
                                                "AUDIO"};
  static constexpr Input<Value> audio_vae{
      "audio_vae", Widget{.extra = R"({"display_name": "Audio VAE"})", .type = "VAE"},
      "Of LTXVAudioVAELoader or VAELoader."};
  static constexpr Input<double> identity_guidance_scale{
      "identity_guidance_scale",
      Widget{.number = 3, .min = 0, .max = 100, .step = 0.01, .round = 0.01},
      "How far; 0 takes no more calls."};
  static constexpr Input<double> start_percent{"start_percent", voice_ports::percent(0)};
  static constexpr Input<double> end_percent{"end_percent", voice_ports::percent(1)};
  static constexpr Output<Value> model_out{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(model, positive, negative, reference_audio, audio_vae, identity_guidance_scale,
                    start_percent, end_percent, model_out, positive_out, negative_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
