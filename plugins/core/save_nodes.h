// ModelSave, CLIPSave, VAESave, CheckpointSave and ImageOnlyCheckpointSave: models as safetensors
// files in the output folder, with what is merged and added, under the names that ComfyUI gives
// tensors and with the workflow. A tensor keeps the type that it has in its own file. On the host;
// stateless.
#pragma once

#include <heddle/node.hpp>

#include "merge_nodes.h"

namespace heddle::loaders {

inline constexpr std::uint32_t kSaver = HEDDLE_NODE_SINK | HEDDLE_NODE_HOST;
inline constexpr std::uint32_t kSaverHidden = HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL;

struct ModelSave {
  static constexpr Info info{"ModelSave",
                             1,
                             "ModelSave",
                             kMergingCategory,
                             "Saves a diffusion model, as name_00001_.safetensors.",
                             kSaver};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      {.text = "diffusion_models/ComfyUI"}};
  static constexpr Input<std::string> prompt{"prompt", kSaverHidden, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kSaverHidden, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr auto ports = heddle::ports(model, filename_prefix, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

struct CLIPSave {
  static constexpr Info info{"CLIPSave",
                             1,
                             "CLIPSave",
                             kMergingCategory,
                             "Saves text encoders, each in a file of its own: "
                             "name_clip_l_00001_.safetensors.",
                             kSaver};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix", {.text = "clip/ComfyUI"}};
  static constexpr Input<std::string> prompt{"prompt", kSaverHidden, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kSaverHidden, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr auto ports = heddle::ports(clip, filename_prefix, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

struct VAESave {
  static constexpr Info info{"VAESave",
                             1,
                             "VAESave",
                             kMergingCategory,
                             "Saves an autoencoder, as name_00001_.safetensors.",
                             kSaver};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      {.text = "vae/ComfyUI_vae"}};
  static constexpr Input<std::string> prompt{"prompt", kSaverHidden, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kSaverHidden, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr auto ports = heddle::ports(vae, filename_prefix, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

struct CheckpointSave {
  static constexpr Info info{"CheckpointSave",
                             1,
                             "Save Checkpoint",
                             kMergingCategory,
                             "Saves diffusion model, text encoders and autoencoder in one file.",
                             kSaver};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      {.text = "checkpoints/ComfyUI"}};
  static constexpr Input<std::string> prompt{"prompt", kSaverHidden, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kSaverHidden, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr auto ports =
      heddle::ports(model, clip, vae, filename_prefix, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

// Of the tower every tensor keeps the name that it has in its own file; ComfyUI writes the names of
// transformers, and reads both.
struct ImageOnlyCheckpointSave {
  static constexpr Info info{"ImageOnlyCheckpointSave",
                             1,
                             "ImageOnlyCheckpointSave",
                             kMergingCategory,
                             "Saves diffusion model, vision tower and autoencoder in one file.",
                             kSaver};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> clip_vision{"clip_vision", HEDDLE_PORT_PASS, "", "CLIP_VISION"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "", "VAE"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      {.text = "checkpoints/ComfyUI"}};
  static constexpr Input<std::string> prompt{"prompt", kSaverHidden, "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{"extra_pnginfo", kSaverHidden, "",
                                                    "EXTRA_PNGINFO"};
  static constexpr auto ports =
      heddle::ports(model, clip_vision, vae, filename_prefix, prompt, extra_pnginfo);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
