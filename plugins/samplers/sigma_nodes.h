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

}  // namespace heddle::samplers
