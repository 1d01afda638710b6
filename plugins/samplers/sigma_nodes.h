// Nodes that cut and change lists of noise levels (SIGMAS). On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct SplitSigmas {
  static constexpr Info info{"SplitSigmas",
                             1,
                             "SplitSigmas",
                             "sampling/custom_sampling/sigmas",
                             "Two lists: up to a step, and from it.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Input<std::int64_t> step{"step", Widget{.max = 10000}};
  static constexpr Output<Tensor> high{"high_sigmas", 0, "", "SIGMAS"};
  static constexpr Output<Tensor> low{"low_sigmas", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(sigmas, step, high, low);
  static void execute(Context& ctx);
};

struct SplitSigmasDenoise {
  static constexpr Info info{"SplitSigmasDenoise",
                             1,
                             "SplitSigmasDenoise",
                             "sampling/custom_sampling/sigmas",
                             "Two lists: the second is the last part of the way.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Input<double> denoise{"denoise",
                                         Widget{.number = 1, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Output<Tensor> high{"high_sigmas", 0, "", "SIGMAS"};
  static constexpr Output<Tensor> low{"low_sigmas", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(sigmas, denoise, high, low);
  static void execute(Context& ctx);
};

struct FlipSigmas {
  static constexpr Info info{"FlipSigmas",
                             1,
                             "FlipSigmas",
                             "sampling/custom_sampling/sigmas",
                             "The list backwards: from a picture to noise.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Output<Tensor> out{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(sigmas, out);
  static void execute(Context& ctx);
};

struct SetFirstSigma {
  static constexpr Widget kSigma{
      .number = 136, .max = 20000, .step = 0.001, .extra = R"({"round": false})"};

  static constexpr Info info{"SetFirstSigma",
                             1,
                             "SetFirstSigma",
                             "sampling/custom_sampling/sigmas",
                             "The list with another first level.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Input<double> sigma{"sigma", kSigma};
  static constexpr Output<Tensor> out{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(sigmas, sigma, out);
  static void execute(Context& ctx);
};

struct ExtendIntermediateSigmas {
  static constexpr Widget kStart{
      .number = -1, .min = -1, .max = 20000, .step = 0.01, .extra = R"({"round": false})"};
  static constexpr Widget kEnd{
      .number = 12, .max = 20000, .step = 0.01, .extra = R"({"round": false})"};
  static constexpr const char* kSpacings[] = {"linear", "cosine", "sine", nullptr};

  static constexpr Info info{"ExtendIntermediateSigmas",
                             1,
                             "ExtendIntermediateSigmas",
                             "sampling/custom_sampling/sigmas",
                             "Each step between two levels in so many parts.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 2, .min = 1, .max = 100}};
  static constexpr Input<double> start_at_sigma{"start_at_sigma", kStart};
  static constexpr Input<double> end_at_sigma{"end_at_sigma", kEnd};
  static constexpr Input<std::string> spacing{"spacing", {.choices = kSpacings}};
  static constexpr Output<Tensor> out{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports =
      heddle::ports(sigmas, steps, start_at_sigma, end_at_sigma, spacing, out);
  static void execute(Context& ctx);
};

struct ManualSigmas {
  static constexpr Info info{"ManualSigmas",
                             1,
                             "",
                             "model/sampling/sigmas",
                             "Levels as they are written.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::string> sigmas{
      "sigmas", Widget{.text = "1, 0.5", .extra = R"({"multiline": false})"}};
  static constexpr Output<Tensor> out{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(sigmas, out);
  static void execute(Context& ctx);
};

struct SamplingPercentToSigma {
  static constexpr Info info{"SamplingPercentToSigma",
                             1,
                             "SamplingPercentToSigma",
                             "sampling/custom_sampling/sigmas",
                             "The level after a part of the way from noise to picture.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> sampling_percent{"sampling_percent",
                                                  Widget{.max = 1, .step = 0.0001}};
  static constexpr Input<bool> return_actual_sigma{"return_actual_sigma", Widget{}};
  static constexpr Output<double> sigma_value{"sigma_value"};
  static constexpr auto ports =
      heddle::ports(model, sampling_percent, return_actual_sigma, sigma_value);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
