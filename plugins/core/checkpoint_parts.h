// The parts of a checkpoint that holds a whole pipeline. Any thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::loaders {

inline constexpr std::uint32_t kFewTensors = 5;  // a prefix with so few is an accident

// Where checkpoints have a vision tower: of Stable Video Diffusion, unCLIP and Stable Zero123.
inline constexpr const char* kVideoTower = "conditioner.embedders.0.open_clip.model.visual.";
inline constexpr const char* kUnclipTower = "embedder.model.visual.";
inline constexpr const char* kViewTower = "cond_stage_model.model.visual.";
// What Stable Zero123 has beside its UNet (plugins/denoisers/unet_view.h).
inline constexpr const char* kViewProjection = "cc_projection.";

// What SAM 3's checkpoint has: the model is all of it, and its text encoder a part.
inline constexpr const char* kDetectionModel =
    "detector.backbone.vision_backbone.trunk.blocks.0.attn.qkv.weight";
inline constexpr const char* kDetectionTexts = "detector.backbone.language_backbone.encoder.";

// The diffusion model: ComfyUI's prefixes, in its order; all of SAM 3's. Throws unsupported where
// there is none.
Checkpoint denoiser_part(const Checkpoint& file);
// The text encoder of this name ("clip_l", "t5xxl"); empty where there is none.
Checkpoint encoder_part(const Checkpoint& file, const std::string& encoder);
// Those of Stable Diffusion 1.x and 2.x and SDXL, in their order; none where there are none.
std::vector<Checkpoint> classic_encoder_parts(const Checkpoint& file);
// Stable Zero123's UNet with the matrix that its checkpoint has beside it; any other model as it
// is.
Value with_view_projection(const Value& denoiser, const Checkpoint& file);
// What tensors beside the diffusion model say of how it was trained: their names as bools, or,
// where they hold one number that counts, as that ("edm_vpred.sigma_max"). None without any.
Value training_marks(const Checkpoint& file);

}  // namespace heddle::loaders
