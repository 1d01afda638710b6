// The nodes that tell WanDancer what it draws: a music, keyframes, and parts of a film with both.
// Formulas: ComfyUI's nodes of these names. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace wan_ports {
inline constexpr Widget kDanceWidth = side(480), kDanceHeight = side(832),
                        kDanceLength{.number = 149, .min = 1, .max = 16384, .step = 4},
                        kPartLength{.number = 149, .min = 1, .max = 10000};
constexpr Input<Value> music(const char* doc) { return Input<Value>("audio", 0, doc, "AUDIO"); }
constexpr Input<Tensor> keyframes() { return Input<Tensor>("images", 0, "", "IMAGE"); }
}  // namespace wan_ports

// Frames behind the given ones are black. Without a mask the given ones are kept, with one those of
// its frames that are white; it has 4 n + 1 frames, of which those behind the video do not count.
struct WanDancerVideo {
  static constexpr Info info{"WanDancerVideo", 1, "", "model/conditioning/wan/dancer",
                             "A video of a person who dances to a music."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::kDanceWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kDanceHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kDanceLength};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first frame.");
  static constexpr Input<Value> clip_vision_output_ref =
      wan_ports::seen("clip_vision_output_ref", "What it saw of the picture that is kept to.");
  static constexpr Input<Tensor> start_image = wan_ports::picture("start_image", "Given frames.");
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HOST,
                                      "1: a frame of start_image is kept.", "MASK"};
  static constexpr Input<Value> heard{"audio_encoder_output", HEDDLE_PORT_OPTIONAL,
                                      "Of WanDancerEncodeAudio.", "AUDIO_ENCODER_OUTPUT"};
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports = heddle::ports(
      positive, negative, vae, width, height, length, clip_vision_output, clip_vision_output_ref,
      start_image, mask, heard, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// A film of 30 frames a second, as long as the music in whole parts, over which the pictures are
// spread; what is within the first 0.2 seconds of a part makes none. Frames without a picture are
// black, the mask is 1 at those with one.
struct WanDancerPadKeyframes {
  static constexpr Info info{
      "WanDancerPadKeyframes", 1, "", "image/video", "The keyframes and the music of a part.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images = wan_ports::keyframes();
  static constexpr Input<std::int64_t> segment_length{"segment_length", wan_ports::kPartLength};
  static constexpr Input<std::int64_t> segment_index{"segment_index", {.max = 100}, "From 0."};
  static constexpr Input<Value> audio = wan_ports::music("The music of the film.");
  static constexpr Output<Tensor> frames{"keyframes_sequence", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask{"keyframes_mask", 0, "", "MASK"};
  static constexpr Output<Value> sound{"audio_segment", 0, "", "AUDIO"};
  static constexpr auto ports =
      heddle::ports(images, segment_length, segment_index, audio, frames, mask, sound);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanDancerPadKeyframesList {
  static constexpr Info info{"WanDancerPadKeyframesList",
                             1,
                             "",
                             "image/video",
                             "The keyframes and the music of the first parts.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images = wan_ports::keyframes();
  static constexpr Input<std::int64_t> segment_length{"segment_length", wan_ports::kPartLength};
  static constexpr Input<std::int64_t> num_segments{"num_segments",
                                                    {.number = 1, .min = 1, .max = 100}};
  static constexpr Input<Value> audio = wan_ports::music("The music of the film.");
  static constexpr Output<Value> frames{"keyframes_sequence", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Output<Value> mask{"keyframes_mask", HEDDLE_PORT_LIST, "", "MASK"};
  static constexpr Output<Value> sound{"audio_segment", HEDDLE_PORT_LIST, "", "AUDIO"};
  static constexpr auto ports =
      heddle::ports(images, segment_length, num_segments, audio, frames, mask, sound);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
