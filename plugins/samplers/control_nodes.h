// Nodes that have a ControlNet say what is to be drawn where. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "control_value.h"

namespace heddle::samplers {

namespace control_ports {
inline constexpr Widget kStrength{.number = 1, .max = 10, .step = 0.01};
inline constexpr Widget kStart{.number = 0, .max = 1, .step = 0.001};
inline constexpr Widget kEnd{.number = 1, .max = 1, .step = 0.001};
constexpr Input<Value> conditioning(const char* name) {
  return Input<Value>(name, HEDDLE_PORT_PASS, "", "CONDITIONING");
}
constexpr Input<Value> control_net() { return Input<Value>("control_net", 0, "", "CONTROL_NET"); }
constexpr Input<Tensor> image() { return Input<Tensor>("image", HEDDLE_PORT_PASS, "", "IMAGE"); }
constexpr Output<Value> changed(const char* name) {
  return Output<Value>(name, 0, "", "CONDITIONING");
}
}  // namespace control_ports

struct ControlNetApply {
  static constexpr Info info{"ControlNetApply",
                             1,
                             "Apply ControlNet (OLD)",
                             "conditioning/controlnet",
                             "A ControlNet at work all the way, also beside the negative prompt.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> conditioning = control_ports::conditioning("conditioning");
  static constexpr Input<Value> control_net = control_ports::control_net();
  static constexpr Input<Tensor> image = control_ports::image();
  static constexpr Input<double> strength{"strength", control_ports::kStrength};
  static constexpr Output<Value> out = control_ports::changed("CONDITIONING");
  static constexpr auto ports = heddle::ports(conditioning, control_net, image, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ControlNetApplyAdvanced {
  static constexpr Info info{"ControlNetApplyAdvanced",
                             1,
                             "Apply ControlNet",
                             "conditioning/controlnet",
                             "A ControlNet at work in a part of the way from noise to picture.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> positive_in = control_ports::conditioning("positive");
  static constexpr Input<Value> negative_in = control_ports::conditioning("negative");
  static constexpr Input<Value> control_net = control_ports::control_net();
  static constexpr Input<Tensor> image = control_ports::image();
  static constexpr Input<double> strength{"strength", control_ports::kStrength};
  static constexpr Input<double> start_percent{"start_percent", control_ports::kStart};
  static constexpr Input<double> end_percent{"end_percent", control_ports::kEnd};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_OPTIONAL, "", "VAE"};
  static constexpr Output<Value> positive = control_ports::changed("positive");
  static constexpr Output<Value> negative = control_ports::changed("negative");
  static constexpr auto ports =
      heddle::ports(positive_in, negative_in, control_net, image, strength, start_percent,
                    end_percent, vae, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ControlNetApplySD3 {
  static constexpr Info info{"ControlNetApplySD3",
                             1,
                             "Apply Controlnet with VAE",
                             "conditioning/controlnet",
                             "A ControlNet that reads the latent of its hint.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> positive_in = control_ports::conditioning("positive");
  static constexpr Input<Value> negative_in = control_ports::conditioning("negative");
  static constexpr Input<Value> control_net = control_ports::control_net();
  static constexpr Input<Value> vae{"vae", 0, "", "VAE"};
  static constexpr Input<Tensor> image = control_ports::image();
  static constexpr Input<double> strength{"strength", control_ports::kStrength};
  static constexpr Input<double> start_percent{"start_percent", control_ports::kStart};
  static constexpr Input<double> end_percent{"end_percent", control_ports::kEnd};
  static constexpr Output<Value> positive = control_ports::changed("positive");
  static constexpr Output<Value> negative = control_ports::changed("negative");
  static constexpr auto ports =
      heddle::ports(positive_in, negative_in, control_net, vae, image, strength, start_percent,
                    end_percent, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ControlNetInpaintingAliMamaApply {
  static constexpr Widget kStart{
      .number = 0, .max = 1, .step = 0.001, .extra = R"({"advanced": true})"};
  static constexpr Widget kEnd{
      .number = 1, .max = 1, .step = 0.001, .extra = R"({"advanced": true})"};

  static constexpr Info info{"ControlNetInpaintingAliMamaApply",
                             1,
                             "Apply ControlNet Inpainting (AliMama)",
                             "model/conditioning/controlnet",
                             "A ControlNet that reads a picture and where it is drawn anew.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> positive_in = control_ports::conditioning("positive");
  static constexpr Input<Value> negative_in = control_ports::conditioning("negative");
  static constexpr Input<Value> control_net = control_ports::control_net();
  static constexpr Input<Value> vae{"vae", 0, "", "VAE"};
  static constexpr Input<Tensor> image = control_ports::image();
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_PASS, "", "MASK"};
  static constexpr Input<double> strength{"strength", control_ports::kStrength};
  static constexpr Input<double> start_percent{"start_percent", kStart};
  static constexpr Input<double> end_percent{"end_percent", kEnd};
  static constexpr Output<Value> positive = control_ports::changed("positive");
  static constexpr Output<Value> negative = control_ports::changed("negative");
  static constexpr auto ports =
      heddle::ports(positive_in, negative_in, control_net, vae, image, mask, strength,
                    start_percent, end_percent, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SetUnionControlNetType {
  static constexpr Info info{"SetUnionControlNetType",
                             1,
                             "SetUnionControlNetType",
                             "conditioning/controlnet",
                             "Which kind of hint a ControlNet for several kinds is given.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> control_net = control_ports::control_net();
  static constexpr Input<std::string> type{"type", Widget{.choices = kUnionTypes}};
  static constexpr Output<Value> out{"CONTROL_NET", 0, "", "CONTROL_NET"};
  static constexpr auto ports = heddle::ports(control_net, type, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
