// ContextWindowsManual: a model that sees a long latent in overlapping parts (context_windows.h).
// WanContextWindowsManual, LTXVContextWindows: the same along a video, in frames of the video.
// On the host; stateless.
#pragma once

#include "patch_nodes.h"

namespace heddle::samplers {

namespace window_ports {
inline constexpr const char* kSchedules[] = {"standard_static", "standard_uniform",
                                             "looped_uniform", "batched", nullptr};
inline constexpr const char* kFuses[] = {"pyramid", "relative", "flat", "overlap-linear", nullptr};
inline constexpr Widget kPlaces{.extra = R"({"default": "", "multiline": false})"};
// Without a greatest number for people.
constexpr Widget whole(double number, double least, double step = 0,
                       const char* extra = R"({"max": null})") {
  return {.number = number, .min = least, .max = 1e12, .step = step, .extra = extra};
}
// Of videos.
constexpr Widget frames(double number, double step) {
  return {.number = number, .min = 1, .max = 16384, .step = step};
}
constexpr Widget choice(Choices choices, const char* extra) {
  return {.choices = choices, .extra = extra, .type = "COMBO"};
}
constexpr Input<std::string> schedule(const char* extra) {
  return {"context_schedule", choice(kSchedules, extra)};
}
inline constexpr const char* kUniform = R"({"default": "standard_uniform"})";
constexpr Input<std::string> fuse() {
  return {"fuse_method", choice(kFuses, R"({"default": "pyramid"})")};
}
constexpr Input<std::int64_t> stride() {
  return {"context_stride", whole(1, 1, 0, R"({"max": null, "advanced": true})")};
}
constexpr Input<bool> closed_loop() {
  return {"closed_loop", Widget{.extra = R"({"advanced": true})"}};
}
constexpr Input<bool> freenoise() {
  return {"freenoise", Widget{.number = 1, .extra = R"({"advanced": true})"},
          "Noise behind the first window repeats it, shuffled."};
}
constexpr Input<bool> split_conds() {
  return {"split_conds_to_windows", Widget{.extra = R"({"advanced": true})"},
          "Of several conditionings each window has the one that stands for its part."};
}
}  // namespace window_ports

struct ContextWindowsManual {
  static constexpr Info info{"ContextWindowsManual",
                             1,
                             "Context Windows (Manual)",
                             "model/patch",
                             "Lets the model see a long latent in overlapping windows.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::int64_t> length{"context_length", window_ports::whole(16, 1)};
  static constexpr Input<std::int64_t> overlap{"context_overlap", window_ports::whole(4, 0)};
  static constexpr Input<std::string> schedule =
      window_ports::schedule(R"({"default": "standard_static"})");
  static constexpr Input<std::int64_t> stride{"context_stride", window_ports::whole(1, 1)};
  static constexpr Input<bool> closed_loop{"closed_loop", Widget{}};
  static constexpr Input<std::string> fuse = window_ports::fuse();
  static constexpr Input<std::int64_t> dim{
      "dim", Widget{.max = 5}, "0: the batch, 2: the height of a picture, 3: its width."};
  static constexpr Input<bool> freenoise{"freenoise", Widget{},
                                         "Noise behind the first window repeats it, shuffled."};
  static constexpr Input<std::string> cond_retained{
      "cond_retain_index_list", window_ports::kPlaces,
      "Places of the conditioning pictures that every window has, with commas between."};
  static constexpr Input<bool> split_conds{
      "split_conds_to_windows", Widget{},
      "Of several conditionings each window has the one that stands for its part."};
  static constexpr Input<std::string> latent_retained{
      "latent_retain_index_list", window_ports::kPlaces,
      "Places that every window has of the latent, with commas between."};
  static constexpr Input<bool> causal_fix{
      "causal_window_fix", Widget{.number = 1},
      "Windows see the place before them, too; the result of it is left out."};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, length, overlap, schedule, stride, closed_loop, fuse, dim, freenoise,
                    cond_retained, split_conds, latent_retained, causal_fix, out);
  static void execute(Context& ctx);
};

struct WanContextWindowsManual {
  static constexpr Info info{"WanContextWindowsManual",
                             1,
                             "Wan Context Windows",
                             "model/patch/wan",
                             "Lets a model of Wan see a long video in overlapping windows.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::int64_t> length{"context_length", window_ports::frames(81, 4),
                                              "Frames of a window: 4 n + 1."};
  static constexpr Input<std::int64_t> overlap{"context_overlap", window_ports::whole(30, 0),
                                               "Frames that a window shares with the next."};
  static constexpr Input<std::string> schedule = window_ports::schedule(window_ports::kUniform);
  static constexpr Input<std::int64_t> stride = window_ports::stride();
  static constexpr Input<bool> closed_loop = window_ports::closed_loop();
  static constexpr Input<std::string> fuse = window_ports::fuse();
  static constexpr Input<bool> freenoise = window_ports::freenoise();
  static constexpr Input<bool> retained{
      "retain_first_frame", Widget{},
      "Every window has the first frame of the conditioning video."};
  static constexpr Input<bool> split_conds = window_ports::split_conds();
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, length, overlap, schedule, stride, closed_loop,
                                              fuse, freenoise, retained, split_conds, out);
  static void execute(Context& ctx);
};

struct LtxvContextWindows {
  static constexpr Info info{"LTXVContextWindows",
                             1,
                             "LTXV Context Windows",
                             "model/patch",
                             "Lets a model of LTX see a long video in overlapping windows.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::int64_t> length{"context_length", window_ports::frames(145, 8),
                                              "Frames of a window: 8 n + 1."};
  static constexpr Input<std::int64_t> overlap{"context_overlap", window_ports::whole(40, 0, 8),
                                               "Frames that a window shares with the next."};
  static constexpr Input<std::string> schedule = window_ports::schedule(window_ports::kUniform);
  static constexpr Input<std::int64_t> stride = window_ports::stride();
  static constexpr Input<bool> closed_loop = window_ports::closed_loop();
  static constexpr Input<std::string> fuse = window_ports::fuse();
  static constexpr Input<bool> freenoise = window_ports::freenoise();
  static constexpr Input<bool> retained{"retain_first_frame", Widget{},
                                        "Every window has the first frame of the latent."};
  static constexpr Input<bool> split_conds = window_ports::split_conds();
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, length, overlap, schedule, stride, closed_loop,
                                              fuse, freenoise, retained, split_conds, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
