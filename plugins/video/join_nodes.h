// ConcatenateVideo: videos one after another. On the host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"
#include "plugins/video/video_nodes.h"

namespace heddle::video {

struct ConcatenateVideo {
  static constexpr const char* kCodecs[] = {"auto", "h264", "av1", nullptr};
  static constexpr Widget kVideos{
      .extra = R"({"template": {"input": {"required": {"video": ["VIDEO", {}]}},
                   "prefix": "video", "min": 1, "max": 100}})",
      .flags = HEDDLE_PORT_LIST | HEDDLE_PORT_PASS};
  static constexpr Widget kCodec{
      .text = "auto", .choices = kCodecs, .extra = R"({"advanced": true})"};
  static constexpr Widget kSound{.extra = R"({"advanced": true})",
                                 .flags = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS,
                                 .type = "AUDIO"};

  static constexpr Info info{"ConcatenateVideo",
                             1,
                             "Concatenate Video",
                             "video",
                             "Videos one after another, with their sound or another one.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<blocks::Growing> videos{"videos", kVideos};
  static constexpr Input<Choice> codec{"codec", kCodec,
                                       "auto: they are encoded by whoever saves them."};
  static constexpr Input<Value> complete_audio{"complete_audio", kSound,
                                               "In the place of their sound."};
  static constexpr Output<Value> out{"VIDEO", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(videos, codec, complete_audio, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::video
