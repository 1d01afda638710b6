// Nodes that apply a model patch to a MODEL (model_patches.h). On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

namespace model_patch_ports {
inline constexpr std::uint32_t kFlags = HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr const char* kAdvanced = R"({"advanced": true})";
inline constexpr Widget kStrength{.number = 1, .min = -10, .max = 10, .step = 0.01};
constexpr Widget percent(double number) {
  return {
      .number = number, .max = 1, .step = 0.001, .extra = kAdvanced, .flags = HEDDLE_PORT_OPTIONAL};
}
constexpr Widget needed_percent(double number) {
  return {.number = number, .max = 1, .step = 0.001, .extra = kAdvanced};
}
constexpr Input<Value> model() { return Input<Value>("model", HEDDLE_PORT_PASS, "", "MODEL"); }
constexpr Input<Value> patch() { return Input<Value>("model_patch", 0, "", "MODEL_PATCH"); }
constexpr Input<Value> vae() { return Input<Value>("vae", 0, "", "VAE"); }
constexpr Input<Tensor> shown(const char* name, const char* type, std::uint32_t flags) {
  return Input<Tensor>(name, HEDDLE_PORT_PASS | flags, "", type);
}
}  // namespace model_patch_ports

struct QwenImageDiffsynthControlnet {
  static constexpr Info info{"QwenImageDiffsynthControlnet",
                             1,
                             "Apply Qwen Image DiffSynth ControlNet",
                             "model/patch/qwen",
                             "Draws by a picture of edges or depths, or a part of a picture anew.",
                             model_patch_ports::kFlags};
  static constexpr Input<Value> model = model_patch_ports::model();
  static constexpr Input<Value> patch = model_patch_ports::patch();
  static constexpr Input<Value> vae = model_patch_ports::vae();
  static constexpr Input<Tensor> image = model_patch_ports::shown("image", "IMAGE", 0);
  static constexpr Input<double> strength{"strength", model_patch_ports::kStrength};
  static constexpr Input<Tensor> mask =
      model_patch_ports::shown("mask", "MASK", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<double> start_percent{"start_percent", model_patch_ports::percent(0)};
  static constexpr Input<double> end_percent{"end_percent", model_patch_ports::percent(1)};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports =
      heddle::ports(model, patch, vae, image, strength, mask, start_percent, end_percent, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ZImageFunControlnet {
  static constexpr Info info{"ZImageFunControlnet",
                             1,
                             "Apply Z-Image Fun ControlNet",
                             "model/patch/z-image",
                             "Draws by a picture of edges, depths or poses, or a part of a picture "
                             "anew, or both.",
                             model_patch_ports::kFlags};
  static constexpr Input<Value> model = model_patch_ports::model();
  static constexpr Input<Value> patch = model_patch_ports::patch();
  static constexpr Input<Value> vae = model_patch_ports::vae();
  static constexpr Input<double> strength{"strength", model_patch_ports::kStrength};
  static constexpr Input<Tensor> image =
      model_patch_ports::shown("image", "IMAGE", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> inpaint_image =
      model_patch_ports::shown("inpaint_image", "IMAGE", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> mask =
      model_patch_ports::shown("mask", "MASK", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<double> start_percent{"start_percent", model_patch_ports::percent(0)};
  static constexpr Input<double> end_percent{"end_percent", model_patch_ports::percent(1)};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, patch, vae, strength, image, inpaint_image,
                                              mask, start_percent, end_percent, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct MiniMaxH3FunControlNetApply {
  static constexpr Info info{
      "MiniMaxH3FunControlNetApply",
      1,
      "Apply MiniMax H3 Fun ControlNet",
      "model/patch",
      "Draws a video by one of edges, depths or poses, or parts of a video anew, or both.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> model = model_patch_ports::model();
  static constexpr Input<Value> patch = model_patch_ports::patch();
  static constexpr Input<Value> vae = model_patch_ports::vae();
  static constexpr Input<double> strength{"strength", Widget{.number = 1, .max = 10, .step = 0.01}};
  static constexpr Input<double> start_percent{"start_percent",
                                               model_patch_ports::needed_percent(0)};
  static constexpr Input<double> end_percent{"end_percent", model_patch_ports::needed_percent(1)};
  static constexpr Input<Tensor> control_video =
      model_patch_ports::shown("control_video", "IMAGE", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> mask =
      model_patch_ports::shown("mask", "MASK", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> source_video =
      model_patch_ports::shown("source_video", "IMAGE", HEDDLE_PORT_OPTIONAL);
  static constexpr Output<Value> out{"model", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, patch, vae, strength, start_percent,
                                              end_percent, control_video, mask, source_video, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
