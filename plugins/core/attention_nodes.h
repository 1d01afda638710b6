// Attention of text encoders and UNets, more or less of its queries, keys, values and results:
// their weights times a number. Models without modules of these names stay as they are. On the
// host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "loader_nodes.h"

namespace heddle::loaders {

inline constexpr Widget kAttentionFactor{
    .number = 1, .min = 0, .max = 10, .step = 0.01, .extra = R"({"advanced": true})"};
inline constexpr std::uint32_t kAttentionFlags = kLoader | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr const char* kAttentionCategory = "experimental/attention_experiments";

struct CLIPAttentionMultiply {
  static constexpr Info info{"CLIPAttentionMultiply",
                             1,
                             "",
                             kAttentionCategory,
                             "The attention of CLIP, its four matrices times a number each.",
                             kAttentionFlags};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<double> q{"q", kAttentionFactor};
  static constexpr Input<double> k{"k", kAttentionFactor};
  static constexpr Input<double> v{"v", kAttentionFactor};
  static constexpr Input<double> result{"out", kAttentionFactor};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip, q, k, v, result, out);
  static void execute(Context& ctx);
};

struct UNetSelfAttentionMultiply {
  static constexpr Info info{
      "UNetSelfAttentionMultiply",
      1,
      "",
      kAttentionCategory,
      "A UNet's attention over the picture, its matrices times a number each.",
      kAttentionFlags};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> q{"q", kAttentionFactor};
  static constexpr Input<double> k{"k", kAttentionFactor};
  static constexpr Input<double> v{"v", kAttentionFactor};
  static constexpr Input<double> result{"out", kAttentionFactor};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, q, k, v, result, out);
  static void execute(Context& ctx);
};

struct UNetCrossAttentionMultiply {
  static constexpr Info info{"UNetCrossAttentionMultiply",
                             1,
                             "",
                             kAttentionCategory,
                             "A UNet's attention to the prompt, its matrices times a number each.",
                             kAttentionFlags};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> q{"q", kAttentionFactor};
  static constexpr Input<double> k{"k", kAttentionFactor};
  static constexpr Input<double> v{"v", kAttentionFactor};
  static constexpr Input<double> result{"out", kAttentionFactor};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, q, k, v, result, out);
  static void execute(Context& ctx);
};

// "structural": over the picture of a frame; "temporal": over frames.
struct UNetTemporalAttentionMultiply {
  static constexpr Info info{"UNetTemporalAttentionMultiply",
                             1,
                             "",
                             kAttentionCategory,
                             "What a video UNet's attentions make, over pictures and over frames, "
                             "times a number each.",
                             kAttentionFlags};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> self_structural{"self_structural", kAttentionFactor};
  static constexpr Input<double> self_temporal{"self_temporal", kAttentionFactor};
  static constexpr Input<double> cross_structural{"cross_structural", kAttentionFactor};
  static constexpr Input<double> cross_temporal{"cross_temporal", kAttentionFactor};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports =
      heddle::ports(model, self_structural, self_temporal, cross_structural, cross_temporal, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
