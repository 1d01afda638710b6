// Things that were followed in a video, shown as a video. On the host; stateless.
#pragma once

#include <heddle/abi/front_end.h>
#include <heddle/node.hpp>

namespace heddle::video {

// As ComfyUI: each thing has a colour, laid over the pictures, or over black where there are none,
// and its number in the middle, below which the score stands, in hundredths, where it is below 1.
struct Sam3TrackPreview {
  static constexpr Widget kTracks{.extra = R"({"display_name": "track_data"})",
                                  .type = "SAM3_TRACK_DATA"};
  static constexpr Widget kOpacity{
      .number = 0.5, .min = 0, .max = 1, .step = 0.05, .extra = R"({"display_name": "opacity"})"};
  static constexpr Widget kFps{
      .number = 24, .min = 1, .max = 120, .step = 1, .extra = R"({"display_name": "fps"})"};
  static constexpr Widget kImages{
      .extra = R"({"display_name": "images"})", .flags = HEDDLE_PORT_OPTIONAL, .type = "IMAGE"};

  static constexpr Info info{"SAM3_TrackPreview",
                             1,
                             "SAM3 Track Preview",
                             "image/detection",
                             "Shows objects that were followed, each in a colour.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Value> tracks{"track_data", kTracks};
  static constexpr Input<double> opacity{"opacity", kOpacity};
  static constexpr Input<double> fps{"fps", kFps};
  static constexpr Input<Tensor> images{"images", kImages};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr auto ports = heddle::ports(tracks, opacity, fps, images, prompt, extra_pnginfo);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::video
