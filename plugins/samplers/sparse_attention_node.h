// BlockSparseAttention: a MODEL whose attention looks at a part of the tokens. By the method `vsa`
// a model of MiniMax H3 is built anew over the same weights, with blocks that say where the video's
// cubes lie (plugins/denoisers/minimax_cubes.h); outside its range of levels it is asked without
// them (model_patches.h), and is dense. On the host; stateless.
#pragma once

#include "patch_nodes.h"
#include "plugins/blocks/port_types.h"

namespace heddle::samplers {

struct BlockSparseAttention {
  static constexpr Widget kMethods{.extra = R"({"display_name": "method", "options": [
      {"key": "sol-attn", "inputs": {"required": {
        "tau": ["FLOAT", {"default": 1.3, "min": 0.0, "max": 4.0, "step": 0.05}]}}},
      {"key": "sla", "inputs": {"required": {
        "keep_percent": ["FLOAT", {"default": 10.0, "min": 0.5, "max": 95.0, "step": 0.5}]}}},
      {"key": "vsa", "inputs": {"required": {
        "keep_percent": ["FLOAT", {"default": 10.0, "min": 0.5, "max": 95.0, "step": 0.5}]}}}]})"};
  static constexpr const char* kSinks[] = {"exact_kv", "exact_kv_and_rows", "off", nullptr};
  static constexpr std::uint32_t kMaybe = HEDDLE_PORT_OPTIONAL;

  static constexpr Info info{
      "BlockSparseAttention",
      1,
      "Model Sparse Attention",
      "model/patch",
      "Lets the attention of FastH3 see the cubes of a video that matter most (vsa), as it was "
      "trained to. By the other methods nothing changes, as they spare work where ComfyUI runs "
      "them, at the cost of the picture: attention stays dense, and a warning says so. vsa runs on "
      "every device, also where ComfyUI has no kernel for it. sink_conditioning and extra_tokens "
      "are of the other methods.",
      patch_ports::kFlags | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<blocks::Variant> selection{"selection", kMethods};
  static constexpr Input<double> start_percent{
      "start_percent", Widget{.number = 0.2, .max = 1, .step = 0.01, .flags = kMaybe}};
  static constexpr Input<double> end_percent{
      "end_percent", Widget{.number = 1, .max = 1, .step = 0.01, .flags = kMaybe}};
  static constexpr Input<std::string> dense_blocks{
      "dense_blocks",
      {.text = "", .extra = R"({"default": "", "advanced": true})", .flags = kMaybe},
      "Layers that are always dense: 0, 1, 47-49."};
  static constexpr Input<std::int64_t> min_tokens{"min_tokens",
                                                  Widget{.number = 12288,
                                                         .max = 1 << 20,
                                                         .step = 512,
                                                         .extra = patch_ports::kAdvanced,
                                                         .flags = kMaybe},
                                                  "Shorter sequences are dense."};
  static constexpr Input<std::int64_t> extra_tokens{
      "extra_tokens",
      Widget{
          .number = 256, .max = 256, .step = 64, .extra = patch_ports::kAdvanced, .flags = kMaybe}};
  static constexpr Input<std::string> sink_conditioning{
      "sink_conditioning",
      Widget{.text = "exact_kv_and_rows",
             .choices = kSinks,
             .extra = R"({"default": "exact_kv_and_rows", "multiselect": false, "advanced": true})",
             .flags = kMaybe,
             .type = "COMBO"}};
  static constexpr Input<bool> verbose{
      "verbose", Widget{.extra = patch_ports::kAdvanced, .flags = kMaybe}, "Changes nothing."};
  static constexpr Output<Value> out{"model", 0, "", "MODEL"};
  static constexpr auto ports =
      heddle::ports(model, selection, start_percent, end_percent, dense_blocks, min_tokens,
                    extra_tokens, sink_conditioning, verbose, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
