// Frames of a video's latent, (B, C, T, H, W): on the host.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

// Gives the first frames the mean and the deviation of those behind them, within bounds. Each frame
// has statistics of its own, over channels, rows and columns; the reference is one for all.
struct NormalizeVideoLatentStart {
  static constexpr Info info{"NormalizeVideoLatentStart",
                             1,
                             "",
                             "model/conditioning",
                             "Brings the brightness and contrast of the first frames to those of "
                             "the frames behind them.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> start_frame_count{
      "start_frame_count", Widget{.number = 4, .min = 1, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> reference_frame_count{
      "reference_frame_count", Widget{.number = 5, .min = 1, .max = 16384, .step = 1}};
  static constexpr Output<Value> out{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(latent, start_frame_count, reference_frame_count, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// Frames of `source` in the place of those of `destination` from `index` on, a negative one counted
// from the end. Where they do not fit, a warning, and the destination as it is.
struct ReplaceVideoLatentFrames {
  static constexpr Info info{"ReplaceVideoLatentFrames",
                             1,
                             "Replace Video Latent Frames",
                             "model/latent/batch",
                             "Puts the frames of one latent in the place of frames of another.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> destination{"destination", 0, "", "LATENT"};
  static constexpr Input<Value> source{"source", HEDDLE_PORT_OPTIONAL, "", "LATENT"};
  static constexpr Input<std::int64_t> index{"index",
                                             Widget{.min = -16384, .max = 16384, .step = 1}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(destination, source, index, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
