// What a LoRA's file says of itself that nodes read. One call's thread.
#pragma once

#include <string>

#include <heddle/model.hpp>

namespace heddle::loaders {

// The metadata of a safetensors file, a record of texts in their order; empty of any other file.
Value file_notes(const std::string& path);

// The model with what notes of a LoRA say: its setting "reference_downscale_factor" is the first
// whose key ends so, as ComfyUI finds it, or is gone. A LoRA without notes changes nothing.
Value with_lora_notes(const Value& model, const Value& notes);

}  // namespace heddle::loaders
