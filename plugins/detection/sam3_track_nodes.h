// plugins/detection/sam3_track_nodes.h - the nodes that follow things in videos with SAM 3.1
// (sam3.h). SAM3_TrackPreview is one of plugins/video. Stateless; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// As ComfyUI: things are told by masks of the first frame or found by texts, at each
// detect_interval-th frame, as long as there are fewer than max_objects (0: 64); those that were
// found are left out of frames where they have not been found again often enough. Masks are of the
// model's square.
struct Sam3VideoTrack {
  static constexpr Widget kImages{.extra = R"({"display_name": "images"})", .type = "IMAGE"};
  static constexpr Widget kModel{.extra = R"({"display_name": "model"})", .type = "MODEL"};
  static constexpr Widget kThreshold{.number = 0.5,
                                     .min = 0,
                                     .max = 1,
                                     .step = 0.01,
                                     .extra = R"({"display_name": "detection_threshold"})"};
  static constexpr Widget kMost{
      .number = 4, .min = 0, .max = 64, .extra = R"({"display_name": "max_objects"})"};
  static constexpr Widget kInterval{.number = 1,
                                    .min = 1,
                                    .max = 1e15,
                                    .extra = R"({"display_name": "detect_interval", "max": null})"};
  static constexpr Widget kMask{.extra = R"({"display_name": "initial_mask"})",
                                .flags = HEDDLE_PORT_OPTIONAL,
                                .type = "MASK"};
  static constexpr Widget kTexts{.extra = R"({"display_name": "conditioning"})",
                                 .flags = HEDDLE_PORT_OPTIONAL,
                                 .type = "CONDITIONING"};

  static constexpr Info info{"SAM3_VideoTrack", 1, "Run SAM3 Video Track", "image/detection",
                             "Follows objects in a video that masks or texts tell."};
  static constexpr Input<Tensor> images{"images", kImages, "(B, H, W, C) f32, 0 to 1"};
  static constexpr Input<Value> model{"model", kModel, "Of SAM 3.1's checkpoint."};
  static constexpr Input<double> threshold{"detection_threshold", kThreshold};
  static constexpr Input<std::int64_t> most{"max_objects", kMost};
  static constexpr Input<std::int64_t> interval{"detect_interval", kInterval};
  static constexpr Input<Tensor> mask{"initial_mask", kMask, "(N, h, w), of the first frame"};
  static constexpr Input<Value> conditioning{"conditioning", kTexts};
  static constexpr Output<Value> tracks{"track_data", 0, "", "SAM3_TRACK_DATA"};
  static constexpr auto ports =
      heddle::ports(images, model, threshold, most, interval, mask, conditioning, tracks);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// The masks of chosen things, all of them where none is named, united and of the video's size.
struct Sam3TrackToMask {
  static constexpr Widget kTracks{.extra = R"({"display_name": "track_data"})",
                                  .type = "SAM3_TRACK_DATA"};
  static constexpr Widget kThings{
      .extra = R"({"display_name": "object_indices", "default": "", "multiline": false})"};

  static constexpr Info info{"SAM3_TrackToMask", 1, "SAM3 Track to Mask", "image/detection",
                             "Makes masks of objects that were followed."};
  static constexpr Input<Value> tracks{"track_data", kTracks};
  static constexpr Input<std::string> things{"object_indices", kThings,
                                             "Numbers apart by commas; none: all objects."};
  static constexpr Output<Tensor> masks{"masks", 0, "(B, H, W)", "MASK"};
  static constexpr auto ports = heddle::ports(tracks, things, masks);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
