// The parts of a checkpoint that holds a whole pipeline. Any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::loaders {

inline constexpr std::uint32_t kFewTensors = 5;  // a prefix with so few is an accident

// The diffusion model: ComfyUI's prefixes, in its order. Throws unsupported where there is none.
Checkpoint denoiser_part(const Checkpoint& file);
// The text encoder of this name ("clip_l", "t5xxl"); empty where there is none.
Checkpoint encoder_part(const Checkpoint& file, const std::string& encoder);

}  // namespace heddle::loaders
