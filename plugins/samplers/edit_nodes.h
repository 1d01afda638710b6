// Nodes that tell CONDITIONINGs what models of some families read besides the text. On the host;
// stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

namespace edit_ports {
constexpr Input<Value> conditioning(const char* name = "conditioning") {
  return Input<Value>(name, HEDDLE_PORT_PASS, "", "CONDITIONING");
}
constexpr Output<Value> changed(const char* name = "CONDITIONING") {
  return Output<Value>(name, 0, "", "CONDITIONING");
}
}  // namespace edit_ports

struct FluxDisableGuidance {
  static constexpr Info info{"FluxDisableGuidance",
                             1,
                             "",
                             "advanced/conditioning/flux",
                             "A FLUX model that was distilled with guidance is told none.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning = edit_ports::conditioning();
  static constexpr Output<Value> out = edit_ports::changed();
  static constexpr auto ports = heddle::ports(conditioning, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ReferenceLatent {
  static constexpr Info info{"ReferenceLatent",
                             1,
                             "",
                             "advanced/conditioning/edit_models",
                             "One more picture that the model is shown.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning = edit_ports::conditioning();
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "",
                                       "LATENT"};
  static constexpr Output<Value> out = edit_ports::changed();
  static constexpr auto ports = heddle::ports(conditioning, latent, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct FluxKontextMultiReferenceLatentMethod {
  static constexpr const char* kMethods[] = {"offset",
                                             "index",
                                             "uxo/uno",
                                             "index_timestep_zero",
                                             "index_timestep_zero_isolated",
                                             "index_timestep_zero_text_start",
                                             nullptr};
  static constexpr Widget kMethod{
      .choices = kMethods, .extra = R"({"advanced": true})", .type = "COMBO"};

  static constexpr Info info{"FluxKontextMultiReferenceLatentMethod",
                             1,
                             "Edit Model Reference Method",
                             "model/conditioning/flux",
                             "Where the pictures that the model is shown lie beside its own.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> conditioning = edit_ports::conditioning();
  static constexpr Input<std::string> reference_latents_method{"reference_latents_method", kMethod};
  static constexpr Output<Value> out = edit_ports::changed();
  static constexpr auto ports = heddle::ports(conditioning, reference_latents_method, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LTXVConditioning {
  static constexpr Info info{
      "LTXVConditioning", 1, "", "conditioning/video_models", "Pictures a second, for LTX-Video.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> positive_in = edit_ports::conditioning("positive");
  static constexpr Input<Value> negative_in = edit_ports::conditioning("negative");
  static constexpr Input<double> frame_rate{"frame_rate",
                                            Widget{.number = 25, .max = 1000, .step = 0.01}};
  static constexpr Output<Value> positive = edit_ports::changed("positive");
  static constexpr Output<Value> negative = edit_ports::changed("negative");
  static constexpr auto ports =
      heddle::ports(positive_in, negative_in, frame_rate, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
