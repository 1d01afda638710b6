// SaveVideo and SaveWEBM: video as files with the workflow in their tags. Names and counters are
// those of pictures. Nothing of a file stays where writing it fails or is cancelled. Frames of a
// video that is being decoded are encoded as they come.
#pragma once

#include "plugins/video/video_nodes.h"

namespace heddle::video {

struct SaveVideo {
  // The encodings of one codec, and the codecs of one format, as /object_info describes them.
#define HEDDLE_VIDEO_CODEC(name, crf, most)                                                  \
  R"({"key": ")" name                                                                        \
  R"(", "inputs": {"required": {}, "optional": {"encoding": ["COMFY_DYNAMICCOMBO_V3", )"     \
  R"({"display_name": "encoding mode", "options": [{"key": "auto", "inputs": {"required": )" \
  R"({}}}, {"key": "re-encode", "inputs": {"required": {"crf": ["FLOAT", {"default": )" crf  \
  R"(, "min": 0.0, "max": )" most R"(, "step": 1.0}]}}}]}]}}})"
#define HEDDLE_VIDEO_AUTO R"({"key": "auto", "inputs": {"required": {}}})"
#define HEDDLE_VIDEO_AV1 HEDDLE_VIDEO_CODEC("av1", "30.0", "63.0")
#define HEDDLE_VIDEO_CODECS \
  "[" HEDDLE_VIDEO_AUTO ", " HEDDLE_VIDEO_CODEC("h264", "23.0", "51.0") ", " HEDDLE_VIDEO_AV1 "]"
#define HEDDLE_VIDEO_FORMAT(name, codecs)                                                 \
  R"({"key": ")" name R"(", "inputs": {"required": {"codec": ["COMFY_DYNAMICCOMBO_V3", )" \
  R"({"options": )" codecs "}]}}}"
  static constexpr const char* kFormats =
      R"({"options": [)" HEDDLE_VIDEO_FORMAT("auto", HEDDLE_VIDEO_CODECS) ", " HEDDLE_VIDEO_FORMAT(
          "mp4", HEDDLE_VIDEO_CODECS) ", " HEDDLE_VIDEO_FORMAT("mkv", HEDDLE_VIDEO_CODECS) ", "
      HEDDLE_VIDEO_FORMAT("webm", "[" HEDDLE_VIDEO_AUTO ", " HEDDLE_VIDEO_AV1 "]") "]}";
  static constexpr const char* kCodecs = R"({"hidden": true, "options": )" HEDDLE_VIDEO_CODECS "}";
#undef HEDDLE_VIDEO_FORMAT
#undef HEDDLE_VIDEO_CODECS
#undef HEDDLE_VIDEO_AV1
#undef HEDDLE_VIDEO_AUTO
#undef HEDDLE_VIDEO_CODEC

  static constexpr Info info{"SaveVideo",
                             1,
                             "Save Video",
                             "video",
                             "Saves a video in the output folder.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST | HEDDLE_PORT_PARTS, "The video.",
                                      "VIDEO"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix", Widget{.text = "video/ComfyUI", .extra = R"({"multiline": false})"}};
  static constexpr Input<DynamicChoice> format{"format", Widget{.extra = kFormats}};
  static constexpr Input<DynamicChoice> codec{
      "codec", Widget{.extra = kCodecs, .flags = HEDDLE_PORT_OPTIONAL},
      "Of workflows that give format and codec side by side."};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"video", 0, "", "VIDEO"};
  static constexpr auto ports =
      heddle::ports(video, filename_prefix, format, codec, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

struct SaveWEBM {
  static constexpr const char* kCodecs[] = {"vp9", "av1", nullptr};

  static constexpr Info info{"SaveWEBM",
                             1,
                             "Save WEBM",
                             "video",
                             "Saves pictures as a WebM file in the output folder.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST | HEDDLE_PORT_PARTS,
                                        "With a fourth channel, vp9 keeps them transparent.",
                                        "IMAGE"};
  static constexpr Input<std::string> filename_prefix{
      "filename_prefix", Widget{.text = "ComfyUI", .extra = R"({"multiline": false})"}};
  static constexpr Input<Choice> codec{"codec", {.choices = kCodecs}};
  static constexpr Input<double> fps{"fps", {.number = 24, .min = 0.01, .max = 1000, .step = 0.01}};
  static constexpr Input<double> crf{
      "crf", {.number = 32, .min = 0, .max = 63, .step = 1, .extra = R"({"min": 0, "step": 1})"}};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, filename_prefix, codec, fps, crf, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::video
