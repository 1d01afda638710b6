// ColorTransfer: a picture with the colours of another. On the host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::image {

struct ColorTransfer {
  static constexpr const char* kMethods[] = {"reinhard_lab", "mkl_lab", "histogram", nullptr};
  static constexpr Widget kStatistics{.extra = R"({"options": [
      {"key": "per_frame", "inputs": {"required": {}}},
      {"key": "uniform", "inputs": {"required": {}}},
      {"key": "target_frame", "inputs": {"required": {
        "target_index": ["INT", {"default": 0, "min": 0, "max": 10000}]}}}]})"};

  static constexpr Info info{"ColorTransfer",
                             1,
                             "Transfer Color",
                             "image/filters",
                             "Pictures with the colours of others: mean and spread of CIE Lab "
                             "(reinhard_lab), their covariances (mkl_lab), or histograms of RGB.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Tensor> image_target{"image_target", 0, "", "IMAGE"};
  static constexpr Input<Tensor> image_ref{"image_ref", 0, "", "IMAGE"};
  static constexpr Input<blocks::Choice> method{"method", Widget{.choices = kMethods}};
  static constexpr Input<blocks::Variant> source_stats{"source_stats", kStatistics};
  static constexpr Input<double> strength{"strength", {.number = 1, .max = 10, .step = 0.01}};
  static constexpr Output<Tensor> out{"image", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(image_target, image_ref, method, source_stats, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
