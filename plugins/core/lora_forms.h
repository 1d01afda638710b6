// Modules of LoRA files that are no plain products: LoHa, LoKr, LoCon with a middle factor, GLoRA,
// OFT, BOFT, and DoRA on top of any of them. The formulas are ComfyUI's (comfy/weight_adapter), and
// those of LyCORIS (https://arxiv.org/abs/2309.14859), DoRA (https://arxiv.org/abs/2402.09353),
// OFT (https://arxiv.org/abs/2306.07280) and BOFT (https://arxiv.org/abs/2311.06243). With f32;
// factors are read when a weight is made. Immutable; any thread.
#pragma once

#include <optional>
#include <string>

#include <heddle/weight_change.hpp>

#include "lora_file.h"

namespace heddle::loaders {

// Whether a module is one of these. Plain products and differences are patches of their own.
bool has_form(const LoraModule& module);

// What the module does to rows of the model, one part after another: those of its "weight". Throws
// invalid_argument where a factor is missing or does not fit the rows, and unsupported where the
// rows are of several tensors and cannot be changed apart from each other.
std::vector<WeightChange> form_changes(const LoraFile& lora, const std::string& name,
                                       const LoraModule& module, const std::vector<Part>& rows,
                                       const Checkpoint& model, double strength);

}  // namespace heddle::loaders
