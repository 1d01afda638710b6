// The node that has Wan 2.1 draw people who speak, by a model patch (InfiniteTalk, MultiTalk): a
// picture that moves with what one or two of them say, in parts that go on. Formulas: ComfyUI's
// node of this name. Stateless.
#pragma once

#include "plugins/blocks/port_types.h"
#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace talk_ports {
inline constexpr Widget kMode{.extra = R"({"options": [
        {"key": "single_speaker", "inputs": {"required": {}}},
        {"key": "two_speakers", "inputs": {"required": {}, "optional": {
          "audio_encoder_output_2": ["AUDIO_ENCODER_OUTPUT", {}],
          "mask_1": ["MASK", {}], "mask_2": ["MASK", {}]}}}]})"};
inline constexpr Widget kMotion{
    .number = 9, .min = 1, .max = 33, .step = 1, .extra = R"({"advanced": true})"};
inline constexpr Widget kScale{.number = 1, .min = -10, .max = 10, .step = 0.01};
inline constexpr const char *kSecond = "audio_encoder_output_2", *kMasks[] = {"mask_1", "mask_2"};
}  // namespace talk_ports

// Of two speakers, both sounds and both masks are given: where each is in the first picture. Model
// and latent belong together.
struct WanInfiniteTalkToVideo {
  static constexpr Info info{
      "WanInfiniteTalkToVideo",
      1,
      "",
      "model/conditioning/wan/infinite talk",
      "A video of one or two people who speak, and the part that follows previous_frames.",
      HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<blocks::Variant> mode{"mode", talk_ports::kMode};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> model_patch{"model_patch", 0, "InfiniteTalk or MultiTalk.",
                                            "MODEL_PATCH"};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<Value> heard{"audio_encoder_output_1", 0,
                                      "What wav2vec2-chinese-base heard of the first speaker.",
                                      "AUDIO_ENCODER_OUTPUT"};
  static constexpr Input<std::int64_t> motion_frame_count{"motion_frame_count",
                                                          talk_ports::kMotion};
  static constexpr Input<double> audio_scale{"audio_scale", talk_ports::kScale};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first picture.");
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "Who speaks; the first frames.");
  static constexpr Input<Tensor> previous_frames = wan_ports::picture(
      "previous_frames", "All frames before; the last motion_frame_count begin this part.");
  static constexpr Output<Value> model_out{"model", 0, "", "MODEL"};
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr Output<std::int64_t> trim_image{"trim_image"};
  static constexpr auto ports =
      heddle::ports(mode, model, model_patch, positive, negative, vae, width, height, length, heard,
                    motion_frame_count, audio_scale, clip_vision_output, start_image,
                    previous_frames, model_out, positive_out, negative_out, latent, trim_image);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
