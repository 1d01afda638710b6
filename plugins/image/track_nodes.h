// Nodes that make TRACKS, where points of a video go, and draw them. On the host; stateless.
// Formulas: ComfyUI's nodes of these names.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

namespace track_ports {
constexpr Input<Tensor> mask() {
  return Input<Tensor>(
      "track_mask", HEDDLE_PORT_OPTIONAL,
      "A mask for each frame, or one for all; one of zeros hides the tracks there.", "MASK");
}
constexpr Output<Value> tracks() { return Output<Value>("TRACKS", 0, "", "TRACKS"); }
constexpr Output<std::int64_t> length() { return Output<std::int64_t>("track_length"); }
constexpr Widget side(double number) {
  return {.number = number, .min = 16, .max = 4096, .step = 16};
}
constexpr Widget share(double number) {
  return {.number = number, .min = 0, .max = 1, .step = 0.01, .extra = R"({"min": 0.0})"};
}
}  // namespace track_ports

struct WanMoveTracksFromCoords {
  static constexpr Widget kCoords{
      .text = "[]",
      .extra = R"({"default": "[]", "forceInput": true, "multiline": false})",
      .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"WanMoveTracksFromCoords",
                             1,
                             "",
                             "model/conditioning/wan/move",
                             "Tracks of JSON: a list of tracks, each a list of points {\"x\": 10, "
                             "\"y\": 20}, a point for each frame.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::string> track_coords{"track_coords", kCoords};
  static constexpr Input<Tensor> track_mask = track_ports::mask();
  static constexpr Output<Value> tracks = track_ports::tracks();
  static constexpr Output<std::int64_t> track_length = track_ports::length();
  static constexpr auto ports = heddle::ports(track_coords, track_mask, tracks, track_length);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct GenerateTracks {
  static constexpr Widget kFrames{.number = 81, .min = 1, .max = 1024},
      kCount{.number = 5, .min = 1, .max = 100},
      kSpread{.number = 0.025, .min = 0, .max = 1, .step = 0.001};
  static constexpr const char* kPaces[] = {"linear",      "ease_in",  "ease_out",
                                           "ease_in_out", "constant", nullptr};
  static constexpr Widget kPace{
      .choices = kPaces, .extra = R"({"multiselect": false})", .type = "COMBO"};

  static constexpr Info info{"GenerateTracks",
                             1,
                             "Generate Video Tracks",
                             "model/conditioning/wan/move",
                             "Tracks side by side, along a line or a curve.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{"width", track_ports::side(832)};
  static constexpr Input<std::int64_t> height{"height", track_ports::side(480)};
  static constexpr Input<double> start_x{"start_x", track_ports::share(0),
                                         "Where the middle track begins, as a share of width."};
  static constexpr Input<double> start_y{"start_y", track_ports::share(0)};
  static constexpr Input<double> end_x{"end_x", track_ports::share(1)};
  static constexpr Input<double> end_y{"end_y", track_ports::share(1)};
  static constexpr Input<std::int64_t> num_frames{"num_frames", kFrames};
  static constexpr Input<std::int64_t> num_tracks{"num_tracks", kCount};
  static constexpr Input<double> track_spread{
      "track_spread", kSpread, "From one track to the next, as a share of the mean side."};
  static constexpr Input<bool> bezier{"bezier", Widget{},
                                      "Along a curve that mid_x and mid_y draw to themselves."};
  static constexpr Input<double> mid_x{"mid_x", track_ports::share(0.5)};
  static constexpr Input<double> mid_y{"mid_y", track_ports::share(0.5)};
  static constexpr Input<std::string> interpolation{"interpolation", kPace,
                                                    "How fast it goes when."};
  static constexpr Input<Tensor> track_mask = track_ports::mask();
  static constexpr Output<Value> tracks = track_ports::tracks();
  static constexpr Output<std::int64_t> track_length = track_ports::length();
  static constexpr auto ports = heddle::ports(
      width, height, start_x, start_y, end_x, end_y, num_frames, num_tracks, track_spread, bezier,
      mid_x, mid_y, interpolation, track_mask, tracks, track_length);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanMoveConcatTrack {
  static constexpr Info info{
      "WanMoveConcatTrack", 1, "", "model/conditioning/wan/move", "Tracks of two sources together.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> tracks_1{"tracks_1", 0, "", "TRACKS"};
  static constexpr Input<Value> tracks_2{"tracks_2", HEDDLE_PORT_OPTIONAL,
                                         "Of as many frames; without them tracks_1 alone.",
                                         "TRACKS"};
  static constexpr Output<Value> tracks = track_ports::tracks();
  static constexpr auto ports = heddle::ports(tracks_1, tracks_2, tracks);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct WanMoveVisualizeTracks {
  static constexpr Widget kEarlier{.number = 24, .min = 1, .max = 1024},
      kRadius{.number = 12, .min = 1, .max = 128, .extra = R"({"advanced": true})"},
      kLine{.number = 16, .min = 1, .max = 128, .extra = R"({"advanced": true})"};

  static constexpr Info info{"WanMoveVisualizeTracks",
                             1,
                             "",
                             "model/conditioning/wan/move",
                             "Draws tracks over the pictures of a video, which come again and "
                             "again where there are more frames.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> line_resolution{"line_resolution", kEarlier,
                                                       "Frames of the way behind a point."};
  static constexpr Input<std::int64_t> circle_size{"circle_size", kRadius, "The radius."};
  static constexpr Input<double> opacity{"opacity", track_ports::share(0.75)};
  static constexpr Input<std::int64_t> line_width{"line_width", kLine};
  static constexpr Input<Value> tracks{"tracks", HEDDLE_PORT_OPTIONAL,
                                       "Without them the pictures stay as they are.", "TRACKS"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, line_resolution, circle_size, opacity, line_width, tracks, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
