// ContextWindowsManual: a model that sees a long latent in overlapping parts (context_windows.h).
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
constexpr Widget whole(double number, double least) {
  return {.number = number, .min = least, .max = 1e12, .extra = R"({"max": null})"};
}
constexpr Widget choice(Choices choices, const char* extra) {
  return {.choices = choices, .extra = extra, .type = "COMBO"};
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
  static constexpr Input<std::string> schedule{
      "context_schedule",
      window_ports::choice(window_ports::kSchedules, R"({"default": "standard_static"})")};
  static constexpr Input<std::int64_t> stride{"context_stride", window_ports::whole(1, 1)};
  static constexpr Input<bool> closed_loop{"closed_loop", Widget{}};
  static constexpr Input<std::string> fuse{
      "fuse_method", window_ports::choice(window_ports::kFuses, R"({"default": "pyramid"})")};
  static constexpr Input<std::int64_t> dim{
      "dim", Widget{.max = 5}, "0: the batch, 2: the height of a picture, 3: its width."};
  static constexpr Input<bool> freenoise{"freenoise", Widget{},
                                         "Noise behind the first window repeats it, shuffled."};
  static constexpr Input<std::string> cond_retained{
      "cond_retain_index_list", window_ports::kPlaces,
      "Places that every window has of the pictures beside the point, with commas between."};
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

}  // namespace heddle::samplers
