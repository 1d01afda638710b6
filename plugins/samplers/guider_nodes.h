// Guiders of three conditionings, of two models, and of pictures with their sound. On the host;
// stateless.
#pragma once

#include "ksampler_nodes.h"

namespace heddle::samplers {

struct DualCFGGuider {
  static constexpr const char* kStyles[] = {"regular", "nested", nullptr};

  static constexpr Info info{"DualCFGGuider",
                             1,
                             "DualCFGGuider",
                             "sampling/custom_sampling/guiders",
                             "Guidance in two steps: from the negative to cond2, from there to "
                             "cond1.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> cond1{"cond1", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> cond2{"cond2", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> cfg_conds{"cfg_conds", kCfg};
  static constexpr Input<double> cfg_cond2_negative{"cfg_cond2_negative", kCfg};
  static constexpr Input<std::string> style{"style", {.choices = kStyles}};
  static constexpr Output<Value> guider{"GUIDER", 0, "", "GUIDER"};
  static constexpr auto ports =
      heddle::ports(model, cond1, cond2, negative, cfg_conds, cfg_cond2_negative, style, guider);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PerpNegGuider {
  static constexpr Info info{"PerpNegGuider",
                             1,
                             "Perp-Neg Guider",
                             "experimental",
                             "Of the negative prediction only what stands across the positive one.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> empty_conditioning{"empty_conditioning", HEDDLE_PORT_PASS, "",
                                                   "CONDITIONING"};
  static constexpr Input<double> cfg{"cfg", kCfg};
  static constexpr Input<double> neg_scale{
      "neg_scale", Widget{.number = 1, .max = 100, .step = 0.01, .extra = R"({"advanced": true})"}};
  static constexpr Output<Value> guider{"GUIDER", 0, "", "GUIDER"};
  static constexpr auto ports =
      heddle::ports(model, positive, negative, empty_conditioning, cfg, neg_scale, guider);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct DualModelGuider {
  static constexpr Info info{"DualModelGuider",
                             1,
                             "Dual Model CFG Guider",
                             "model/sampling/guiders",
                             "Guidance whose negative side is another model.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> cfg{"cfg",
                                     Widget{.number = 4, .max = 100, .step = 0.1, .round = 0.01}};
  static constexpr Input<Value> model_negative{
      "model_negative", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "", "MODEL"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "",
                                         "CONDITIONING"};
  static constexpr Output<Value> guider{"GUIDER", 0, "", "GUIDER"};
  static constexpr auto ports =
      heddle::ports(model, positive, cfg, model_negative, negative, guider);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// Of a latent without sound, or where both numbers are the same, as CFGGuider with video_cfg.
struct LTXVDualCFGGuider {
  static constexpr Info info{"LTXVDualCFGGuider",
                             1,
                             "LTXV Dual CFG Guider",
                             "model/sampling/guiders",
                             "Guidance of pictures and of their sound by two numbers.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> video_cfg{
      "video_cfg", Widget{.number = 3, .max = 100, .step = 0.1, .round = 0.01}};
  static constexpr Input<double> audio_cfg{
      "audio_cfg", Widget{.number = 7, .max = 100, .step = 0.1, .round = 0.01}};
  static constexpr Output<Value> guider{"GUIDER", 0, "", "GUIDER"};
  static constexpr auto ports =
      heddle::ports(model, positive, negative, video_cfg, audio_cfg, guider);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
