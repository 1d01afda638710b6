// Latent operations: what they are, and nodes that carry them out, on a latent or on the guidance
// of a model. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct LatentOperationTonemapReinhard {
  static constexpr Info info{"LatentOperationTonemapReinhard",
                             1,
                             "",
                             "latent/advanced/operations",
                             "Long vectors over channels are shortened.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<double> multiplier{"multiplier",
                                            Widget{.number = 1, .max = 100, .step = 0.01}};
  static constexpr Output<Value> operation{"LATENT_OPERATION", 0, "", "LATENT_OPERATION"};
  static constexpr auto ports = heddle::ports(multiplier, operation);
  static void execute(Context& ctx);
};

struct LatentOperationSharpen {
  static constexpr const char* kAdvanced = R"({"advanced": true})";

  static constexpr Info info{"LatentOperationSharpen",
                             1,
                             "",
                             "model/latent/advanced/operations",
                             "Directions over channels minus their blur.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::int64_t> sharpen_radius{
      "sharpen_radius", Widget{.number = 9, .min = 1, .max = 31, .step = 1, .extra = kAdvanced}};
  static constexpr Input<double> sigma{
      "sigma", Widget{.number = 1, .min = 0.1, .max = 10, .step = 0.1, .extra = kAdvanced}};
  static constexpr Input<double> alpha{
      "alpha", Widget{.number = 0.1, .max = 5, .step = 0.01, .extra = kAdvanced}};
  static constexpr Output<Value> operation{"LATENT_OPERATION", 0, "", "LATENT_OPERATION"};
  static constexpr auto ports = heddle::ports(sharpen_radius, sigma, alpha, operation);
  static void execute(Context& ctx);
};

struct LatentOperationBlend {
  static constexpr Info info{"LatentOperationBlend",      1,
                             "Latent Operation Blend",    "model/latent",
                             "A part of another latent.", HEDDLE_NODE_HOST};
  static constexpr Input<Value> reference{"reference", 0, "", "LATENT"};
  static constexpr Input<double> strength{"strength",
                                          Widget{.number = 1, .max = 1, .step = 0.0001}};
  static constexpr Output<Value> operation{"operation", 0, "", "LATENT_OPERATION"};
  static constexpr auto ports = heddle::ports(reference, strength, operation);
  static void execute(Context& ctx);
};

struct LatentApplyOperation {
  static constexpr Info info{"LatentApplyOperation",
                             1,
                             "",
                             "latent/advanced/operations",
                             "An operation on a latent.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<Value> operation{"operation", 0, "", "LATENT_OPERATION"};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, operation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentApplyOperationCFG {
  static constexpr Info info{"LatentApplyOperationCFG",
                             1,
                             "",
                             "model/latent/advanced/operations",
                             "An operation on the difference of the two predictions.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> operation{"operation", 0, "", "LATENT_OPERATION"};
  static constexpr Input<double> start_percent{"start_percent",
                                               Widget{.max = 1,
                                                      .step = 0.001,
                                                      .extra = R"({"advanced": true})",
                                                      .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Input<double> end_percent{"end_percent", Widget{.number = 1,
                                                                   .max = 1,
                                                                   .step = 0.001,
                                                                   .extra = R"({"advanced": true})",
                                                                   .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, operation, start_percent, end_percent, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
