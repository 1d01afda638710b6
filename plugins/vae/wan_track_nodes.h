// Nodes that tell Wan where points of a picture go: tracks as JSON for ATI, TRACKS for Wan-Move.
// Formulas: ComfyUI's nodes of these names. Stateless.
#pragma once

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

struct WanTrackToVideo {
  static constexpr Widget kTracks{.text = "[]", .extra = R"({"multiline": true})"};
  static constexpr Widget kTemperature{
      .number = 220, .min = 1, .max = 1000, .step = 0.1, .extra = R"({"advanced": true})"};
  static constexpr Widget kNearest{
      .number = 2, .min = 1, .max = 10, .extra = R"({"advanced": true})"};

  static constexpr Info info{"WanTrackToVideo", 1, "", "model/conditioning/wan/move",
                             "A video that begins with a picture, whose points go where tracks "
                             "say, by ATI. Each set of tracks is of a video of the batch."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::string> tracks{
      "tracks", kTracks,
      "JSON: a list of tracks, each of up to 121 points {\"x\": 10, \"y\": 20} in pixels, over "
      "the whole video; or a list of such lists. Without tracks as WanImageToVideo."};
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<double> temperature{"temperature", kTemperature,
                                             "How fast a track fades with the distance."};
  static constexpr Input<std::int64_t> topk{"topk", kNearest,
                                            "How many tracks a place is mixed of."};
  static constexpr Input<Tensor> start_image{
      "start_image", HEDDLE_PORT_HOST, "The first frame, of each video of the batch.", "IMAGE"};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first frame.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, tracks, width, height, length, batch_size, temperature,
                    topk, start_image, clip_vision_output, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanMoveTrackToVideo {
  static constexpr Widget kStrength{
      .number = 1, .min = 0, .max = 100, .step = 0.01, .extra = R"({"min": 0.0})"};

  static constexpr Info info{"WanMoveTrackToVideo", 1, "", "model/conditioning/wan/move",
                             "A video that begins with given frames, whose points go where tracks "
                             "say, by Wan-Move. Of tracks that meet, the last one counts."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<double> strength{"strength", kStrength,
                                          "How much of a point comes along: 1 all of it."};
  static constexpr Input<std::int64_t> width{"width", wan_ports::kWidth};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{"length", wan_ports::kLength};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Tensor> start_image{"start_image", HEDDLE_PORT_HOST, "The first frames.",
                                             "IMAGE"};
  static constexpr Input<Value> tracks{"tracks", HEDDLE_PORT_OPTIONAL,
                                       "Of as many frames as the video.", "TRACKS"};
  static constexpr Input<Value> clip_vision_output =
      wan_ports::seen("clip_vision_output", "What clip_vision_h saw of the first frame.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, strength, width, height, length, batch_size,
                    start_image, tracks, clip_vision_output, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
