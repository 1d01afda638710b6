// plugins/denoisers/qwen_fun_control.h - "Fun" ControlNets of Qwen-Image, by VideoX-Fun (union:
// edges, depth, poses and more by one file). Source of the architecture: ComfyUI's description of
// these files and the publishers' VideoX-Fun.
//
// A file has blocks of Qwen-Image's kind, a layer for tokens of the hint, and a layer behind each
// block that makes its residual. What becomes of the latent, the text and the noise level before
// them is the denoiser's: so by itself a file makes tokens of its hint alone, and whoever knows the
// denoiser joins the file to the denoiser's under kFunPrefix and builds that anew with
// `joined_control` (the prefix) in its configuration. The hint is a picture's latent; what files
// read behind it (a mask, and the latent of a picture to draw over) is zero, as in ComfyUI.
//
// Outputs of the joined model: control.first.<k> (control.h). Any thread.
#pragma once

#include <string>

#include <heddle/model.hpp>

#include "control.h"

namespace heddle::denoisers {

inline constexpr const char* kFunPrefix = "fun_control.";

struct QwenFunControl {
  static constexpr Family family{"qwen-image-fun-control", kControlRole, 1,
                                 "ControlNet of Qwen-Image that begins with its layers"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

// The joined model's tokens: img (B, S, D), those of the latent, with those of the input "hint".
// `control`: of the prefix.
Source add_fun_hint(const Checkpoint& file, const std::string& prefix,
                    const ControlBuilder& control, const Source& img, std::int64_t hidden,
                    Blocks& graph);
// The layer that makes the residual of a block.
inline std::string fun_residual_layer(int block) {
  return "control_blocks." + std::to_string(block) + ".after_proj";
}
// What samplers read of a file, and of the joined model.
void add_fun_settings(const Checkpoint& file, const std::string& prefix, Blocks& graph);

}  // namespace heddle::denoisers
