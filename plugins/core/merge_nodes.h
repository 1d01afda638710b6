// Merged models, under ComfyUI's names: a MODEL or a CLIP with patches, which read no weights
// before a model runs. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "loader_nodes.h"

namespace heddle::loaders {

inline constexpr const char* kMergingCategory = "advanced/model_merging";
inline constexpr const char* kMergingBlocksCategory = "advanced/model_merging/model_specific";
inline constexpr Widget kRatio{.number = 1, .min = 0, .max = 1, .step = 0.01};
inline constexpr Widget kMultiplier{.number = 1, .min = -10, .max = 10, .step = 0.01};

struct ModelMergeSimple {
  static constexpr Info info{"ModelMergeSimple",
                             1,
                             "ModelMergeSimple",
                             kMergingCategory,
                             "ratio * model1 + (1 - ratio) * model2.",
                             kLoader};
  static constexpr Input<Value> model1{"model1", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> model2{"model2", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> ratio{"ratio", kRatio};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model1, model2, ratio, out);
  static void execute(Context& ctx);
};

struct ModelMergeAdd {
  static constexpr Info info{"ModelMergeAdd",    1,      "ModelMergeAdd", kMergingCategory,
                             "model1 + model2.", kLoader};
  static constexpr Input<Value> model1{"model1", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> model2{"model2", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model1, model2, out);
  static void execute(Context& ctx);
};

struct ModelMergeSubtract {
  static constexpr Info info{
      "ModelMergeSubtract",
      1,
      "ModelMergeSubtract",
      kMergingCategory,
      "multiplier * (model1 - model2): a difference, to be added to another.",
      kLoader};
  static constexpr Input<Value> model1{"model1", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> model2{"model2", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> multiplier{"multiplier", kMultiplier};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model1, model2, multiplier, out);
  static void execute(Context& ctx);
};

struct ModelMergeBlocks {
  static constexpr Info info{
      "ModelMergeBlocks",
      1,
      "ModelMergeBlocks",
      kMergingCategory,
      "As ModelMergeSimple, with a ratio for the blocks of a UNet before, in "
      "and behind its middle; other models take the first one.",
      kLoader};
  static constexpr Input<Value> model1{"model1", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> model2{"model2", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> input{"input", kRatio};
  static constexpr Input<double> middle{"middle", kRatio};
  static constexpr Input<double> last{"out", kRatio};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model1, model2, input, middle, last, out);
  static void execute(Context& ctx);
};

struct CLIPMergeSimple {
  static constexpr Info info{"CLIPMergeSimple",
                             1,
                             "CLIPMergeSimple",
                             kMergingCategory,
                             "ratio * clip1 + (1 - ratio) * clip2, encoder by encoder.",
                             kLoader};
  static constexpr Input<Value> clip1{"clip1", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<Value> clip2{"clip2", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<double> ratio{"ratio", kRatio};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip1, clip2, ratio, out);
  static void execute(Context& ctx);
};

struct CLIPMergeAdd {
  static constexpr Info info{"CLIPMergeAdd",   1,      "CLIPMergeAdd", kMergingCategory,
                             "clip1 + clip2.", kLoader};
  static constexpr Input<Value> clip1{"clip1", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<Value> clip2{"clip2", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip1, clip2, out);
  static void execute(Context& ctx);
};

struct CLIPMergeSubtract {
  static constexpr Info info{"CLIPMergeSubtract",
                             1,
                             "CLIPMergeSubtract",
                             kMergingCategory,
                             "multiplier * (clip1 - clip2).",
                             kLoader};
  static constexpr Input<Value> clip1{"clip1", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<Value> clip2{"clip2", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<double> multiplier{"multiplier", kMultiplier};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip1, clip2, multiplier, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
