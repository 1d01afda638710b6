// plugins/denoisers/unet_lora_control.h - ControlNets that are a LoRA of their UNet
// ("control-LoRA"): files of what a ControlNet has besides, and of two factors for each matrix that
// it shares with the UNet ("input_blocks.1.0.in_layers.2.up" and ".down"): its weight is the UNet's
// with their product added. What the file has whole stands in the place of the UNet's.
//
// By itself the file makes its filters alone; its settings tell what the whole is going to be.
// Whoever knows the UNet joins the file to the UNet's under kControlLoraPrefix, builds the UNet
// anew with `joined_control` in its configuration, and applies the factors that the setting
// "control_lora_targets" names: {name of the factors: tensor of the joined file}. A file of
// differences ("difference" is one of its tensors) is used likewise, with `control_difference`:
// true and the prefix of its own names behind: its tensors are added to the UNet's. Any thread.
#pragma once

#include <string>

#include <heddle/model.hpp>

#include "control.h"

namespace heddle::denoisers {

class UnetNames;

inline constexpr const char* kControlLoraPrefix = "control_lora.";

struct UnetLoraControl {
  static constexpr Family family{"unet-control-lora", kControlRole, 1,
                                 "ControlNets that are a LoRA of Stable Diffusion or SDXL"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

// Used while the UNet is built anew. `file`: the joined one; `prefix`: of the ControlNet's tensors.
void add_lora_targets(const Checkpoint& file, const std::string& prefix, bool is_difference,
                      const UnetNames& names, Blocks& graph);

}  // namespace heddle::denoisers
