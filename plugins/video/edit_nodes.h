// Nodes that cut VIDEO: by the interface's widget of edits, and by numbers of pictures.
#pragma once

#include "plugins/video/video_nodes.h"

namespace heddle::video {

inline constexpr Widget kFrameSeed{.kind = HEDDLE_WIDGET_SEED,
                                   .extra = R"({"control_after_generate": null})"};

struct VideoTrim {
  static constexpr Info info{"VideoTrim",
                             1,
                             "Trim Video (Advanced)",
                             "video",
                             "A part of a video in time, with a preview.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL |
                                 HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Input<VideoEdit> trim{"trim", Widget{.extra = R"({"features": ["trim"]})"}};
  static constexpr Input<bool> strict_duration{
      "strict_duration", Widget{.extra = R"({"default": false, "advanced": true})"}};
  static constexpr Output<Value> out{"VIDEO", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(video, trim, strict_duration, out);
  static void execute(Context& ctx);
};

struct VideoCrop {
  static constexpr Info info{"VideoCrop",
                             1,
                             "Crop Video",
                             "video",
                             "A part of a video's pictures, with a preview.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL |
                                 HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Input<VideoEdit> crop{"crop", Widget{.extra = R"({"features": ["crop"]})"}};
  static constexpr Output<Value> out{"VIDEO", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(video, crop, out);
  static void execute(Context& ctx);
};

struct VideoTemporalCrop {
  static constexpr Info info{"VideoTemporalCrop",
                             1,
                             "Crop Video (Temporal)",
                             "video/transform",
                             "Pictures of a video, one after another.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Input<std::int64_t> start_frame{"start_frame", Widget{.max = 99999}};
  static constexpr Input<std::int64_t> length{"length", {.number = 16, .min = 1, .max = 99999}};
  static constexpr Output<Value> out{"video", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(video, start_frame, length, out);
  static void execute(Context& ctx);
};

struct VideoRandomTemporalCrop {
  static constexpr Info info{"VideoRandomTemporalCrop",
                             1,
                             "Crop Video (Temporal Random)",
                             "video/transform",
                             "Pictures of a video, one after another from a random one on.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Input<std::int64_t> length{"length", {.number = 16, .min = 1, .max = 99999}};
  static constexpr Input<std::uint64_t> seed{"seed", kFrameSeed};
  static constexpr Output<Value> out{"video", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(video, length, seed, out);
  static void execute(Context& ctx);
};

struct VideoFrameSample {
  static constexpr const char* kStrategies[] = {"uniform", "head", "tail", "random", nullptr};

  static constexpr Info info{"VideoFrameSample",
                             1,
                             "Sample Video Frame",
                             "video",
                             "Some of the pictures of a video.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Input<std::int64_t> num_frames{"num_frames",
                                                  {.number = 16, .min = 1, .max = 9999}};
  static constexpr Input<Choice> strategy{"strategy", {.text = "uniform", .choices = kStrategies}};
  static constexpr Input<std::uint64_t> seed{"seed", kFrameSeed, "Of random pictures."};
  static constexpr Output<Value> out{"video", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(video, num_frames, strategy, seed, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::video
