// Nodes that guide a model away from what it sees without some of its blocks. They add a record to
// its settings, nothing else. On the host; stateless.
#pragma once

#include "patch_nodes.h"

namespace heddle::samplers {

namespace skip_ports {
inline constexpr Widget kLayers{.text = "7, 8, 9",
                                .extra = R"({"advanced": true, "multiline": false})"};
inline constexpr Widget kScale{.number = 3, .max = 10, .step = 0.1};
constexpr Input<std::string> layers(const char* name) { return {name, kLayers}; }
constexpr Input<double> percent(const char* name, double number) {
  return {name, patch_ports::advanced(number, 0, 1, 0.001)};
}
}  // namespace skip_ports

struct SkipLayerGuidanceDiT {
  static constexpr Info info{"SkipLayerGuidanceDiT",
                             1,
                             "",
                             "advanced/guidance",
                             "Away from what the model sees without some of its blocks.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::string> double_layers = skip_ports::layers("double_layers");
  static constexpr Input<std::string> single_layers = skip_ports::layers("single_layers");
  static constexpr Input<double> scale{"scale", skip_ports::kScale};
  static constexpr Input<double> start_percent = skip_ports::percent("start_percent", 0.01);
  static constexpr Input<double> end_percent = skip_ports::percent("end_percent", 0.15);
  static constexpr Input<double> rescaling_scale{"rescaling_scale",
                                                 Widget{.max = 10, .step = 0.01}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, double_layers, single_layers, scale,
                                              start_percent, end_percent, rescaling_scale, out);
  static void execute(Context& ctx);
};

struct SkipLayerGuidanceDiTSimple {
  static constexpr Info info{"SkipLayerGuidanceDiTSimple",
                             1,
                             "",
                             "advanced/guidance",
                             "The negative side of the guidance sees without some of the blocks.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::string> double_layers = skip_ports::layers("double_layers");
  static constexpr Input<std::string> single_layers = skip_ports::layers("single_layers");
  static constexpr Input<double> start_percent = skip_ports::percent("start_percent", 0);
  static constexpr Input<double> end_percent = skip_ports::percent("end_percent", 1);
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, double_layers, single_layers, start_percent, end_percent, out);
  static void execute(Context& ctx);
};

struct SkipLayerGuidanceSD3 {
  static constexpr Info info{"SkipLayerGuidanceSD3",
                             1,
                             "",
                             "advanced/guidance",
                             "Away from what the model sees without some of its double blocks.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::string> layers = skip_ports::layers("layers");
  static constexpr Input<double> scale{"scale", skip_ports::kScale};
  static constexpr Input<double> start_percent = skip_ports::percent("start_percent", 0.01);
  static constexpr Input<double> end_percent = skip_ports::percent("end_percent", 0.15);
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, layers, scale, start_percent, end_percent, out);
  static void execute(Context& ctx);
};

// UNets alone have attentions in their middle that can be left out; other models stay as they are.
struct PerturbedAttentionGuidance {
  static constexpr Info info{"PerturbedAttentionGuidance",
                             1,
                             "",
                             "model_patches/unet",
                             "Away from what a UNet sees without self-attention in its middle.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> scale{
      "scale", Widget{.number = 3, .max = 100, .step = 0.01, .round = 0.01}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, scale, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
