// Nodes that make VIDEO, take it apart and cut it. A VIDEO is a record; plugins/video/values.h says
// what is in it. Files are decoded by the node that needs their pictures.
#pragma once

#include <heddle/abi/front_end.h>
#include <heddle/abi/parts.h>
#include <heddle/node.hpp>

namespace heddle::video {

// One of several names, in the later of ComfyUI's two forms.
struct Choice : std::string {
  Choice(std::string name) : std::string(std::move(name)) {}  // NOLINT: meant to convert
};
// The same, where some of them are numbers.
struct MixedChoice : Value {
  MixedChoice(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// A name that brings inputs of its own with it: they are handed over as "name.input".
struct DynamicChoice : Value {
  DynamicChoice(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};
// A cut in time and of pictures: {trim: {start_time, duration}, crop: {x, y, width, height}}.
struct VideoEdit : Value {
  VideoEdit(Value value) : Value(std::move(value)) {}  // NOLINT: meant to convert
};

}  // namespace heddle::video

namespace heddle {

template <>
struct Wire<video::Choice> : Wire<std::string> {
  static constexpr const char* type = "COMBO";
};
template <>
struct Wire<video::MixedChoice> : Wire<Value> {
  static constexpr const char* type = "COMBO";
};
template <>
struct Wire<video::DynamicChoice> : Wire<Value> {
  static constexpr const char* type = "COMFY_DYNAMICCOMBO_V3";
};
template <>
struct Wire<video::VideoEdit> : Wire<Value> {
  static constexpr const char* type = "VIDEO_EDIT";
};

}  // namespace heddle

namespace heddle::video {

inline constexpr const char* kNoMost = R"({"max": null})";
inline constexpr double kMostSeconds = 1e15;

// Files are listed as those of pictures are. The edit is applied when it is read.
struct LoadVideo {
  static constexpr Info info{"LoadVideo",
                             1,
                             "Load Video",
                             "video",
                             "A file of video; its pictures are decoded where they are needed.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_INTERMEDIATE_OUTPUT};
  static constexpr Input<Choice> file{
      "file",
      {.source = "input", .kind = HEDDLE_WIDGET_FILE, .extra = R"({"video_upload": true})"}};
  static constexpr Input<VideoEdit> edit{
      "edit", {.extra = "{}", .flags = HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS}};
  static constexpr Output<Value> video{"VIDEO", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(file, edit, video);
  static constexpr auto judged = heddle::judged(file);
  static Refusal validate(Validation& question);
  static void execute(Context& ctx);
  static std::uint64_t fingerprint(Context& ctx);
};

struct CreateVideo {
  static constexpr const char* kSpaces[] = {"sRGB", "HDR", "HDR PQ", nullptr};
  static constexpr const char* kCodecs[] = {"none", "auto", "h264", "av1", nullptr};

  static constexpr Info info{
      "CreateVideo",   1, "Create Video", "video", "Pictures and sound as a video.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_PASS | HEDDLE_PORT_PARTS, "",
                                        "IMAGE"};
  static constexpr Input<double> fps{"fps", {.number = 30, .min = 1, .max = 120, .step = 1}};
  static constexpr Input<Value> audio{"audio", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS, "",
                                      "AUDIO"};
  static constexpr Input<MixedChoice> bit_depth{
      "bit_depth",
      {.extra = R"({"multiselect": false, "options": ["auto", 8, 10], "default": "auto"})",
       .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Input<Choice> color_space{
      "color_space", {.text = "sRGB", .choices = kSpaces, .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Input<Choice> codec{"codec",
                                       {.text = "none",
                                        .choices = kCodecs,
                                        .extra = R"({"advanced": true})",
                                        .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Output<Value> video{"VIDEO", HEDDLE_PORT_PARTS, "", "VIDEO"};
  static constexpr auto ports =
      heddle::ports(images, fps, audio, bit_depth, color_space, codec, video);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct GetVideoComponents {
  static constexpr Info info{"GetVideoComponents",
                             1,
                             "Get Video Components",
                             "video",
                             "The pictures of a video, its sound (None where it has none), rate, "
                             "bit depth and colour space.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Output<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Output<Value> audio{"audio", 0, "", "AUDIO"};
  static constexpr Output<double> fps{"fps"};
  static constexpr Output<Value> bit_depth{"bit_depth", 0, "", "COMBO"};
  static constexpr Output<Choice> color_space{"color_space"};
  static constexpr auto ports = heddle::ports(video, images, audio, fps, bit_depth, color_space);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct VideoSlice {
  static constexpr Info info{
      "Video Slice", 1, "Trim Video", "video", "A part of a video in time.", HEDDLE_NODE_HOST};
  static constexpr Input<Value> video{"video", HEDDLE_PORT_HOST, "", "VIDEO"};
  static constexpr Input<double> start_time{"start_time",
                                            {.min = -100000, .max = 100000, .step = 0.001}};
  static constexpr Input<double> duration{"duration",
                                          {.max = kMostSeconds, .step = 0.001, .extra = kNoMost}};
  static constexpr Input<bool> strict_duration{"strict_duration",
                                               Widget{.extra = R"({"default": false})"}};
  static constexpr Output<Value> out{"VIDEO", 0, "", "VIDEO"};
  static constexpr auto ports = heddle::ports(video, start_time, duration, strict_duration, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::video
