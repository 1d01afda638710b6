// Nodes that tell ComfyUI how to run a model. Which kernels run, in which type and on how many
// devices is the planner's here; so some of these give the model on as it is. On the host;
// stateless.
#pragma once

#include <heddle/node.hpp>

#include "loader_nodes.h"

namespace heddle::loaders {

struct TorchCompileModel {
  static constexpr const char* kBackends[] = {"inductor", "cudagraphs", nullptr};

  static constexpr Info info{"TorchCompileModel",
                             1,
                             "",
                             "experimental",
                             "Changes nothing: models are always traced, and captured where a "
                             "device can.",
                             kLoader | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> backend{
      "backend", Widget{.choices = kBackends, .extra = R"({"advanced": true})", .type = "COMBO"}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, backend, out);
  static void execute(Context& ctx) { ctx[out] = ctx[model]; }
};

struct ModelAttentionBackend {
  static constexpr const char* kKernels[] = {"pytorch attention", "comfy kitchen attention",
                                             nullptr};

  static constexpr Info info{"ModelAttentionBackend",
                             1,
                             "ModelAttentionBackend",
                             "model/patch",
                             "Changes nothing: each device has its own kernels of attention.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> attention{"attention", Widget{.choices = kKernels}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, attention, out);
  static constexpr auto judged = heddle::judged(attention);
  static Refusal validate(Validation&) { return {}; }  // any name will do
  static void execute(Context& ctx) { ctx[out] = ctx[model]; }
};

struct ModelComputeDtype {
  static constexpr const char* kTypes[] = {"default", "fp32", "fp16", "bf16", nullptr};

  static constexpr Info info{"ModelComputeDtype",
                             1,
                             "ModelComputeDtype",
                             "advanced/debug",
                             "Changes nothing, and says so of a type other than the default: "
                             "--compute sets the type that a device computes in.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> dtype{
      "dtype", Widget{.choices = kTypes, .extra = R"({"advanced": true})"}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, dtype, out);
  static void execute(Context& ctx);
};

struct wanBlockSwap {
  static constexpr Info info{"wanBlockSwap",
                             1,
                             "",
                             "",
                             "Changes nothing: weights that find no room are streamed anyway.",
                             kLoader | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, out);
  static void execute(Context& ctx) { ctx[out] = ctx[model]; }
};

struct MultiGPU_WorkUnits {
  static constexpr Widget kMost{
      .number = 2, .min = 1, .max = 1 << 30, .step = 1, .extra = R"({"max": null})"};

  static constexpr Info info{
      "MultiGPU_WorkUnits",
      1,
      "MultiGPU CFG Split",
      "advanced/multigpu",
      "Changes nothing: the planner spreads a model over several devices "
      "where that is faster. The key \"parallel\" of a workflow asks for it.",
      kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::int64_t> max_gpus{"max_gpus", kMost};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, max_gpus, out);
  static void execute(Context& ctx) { ctx[out] = ctx[model]; }
};

}  // namespace heddle::loaders
