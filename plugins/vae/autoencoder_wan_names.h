// plugins/vae/autoencoder_wan_names.h - where the weights of the causal autoencoders of Wan 2.1,
// Qwen-Image and Qwen-Image 2.1 are in a checkpoint: the original names
// ("decoder.middle.0.residual.0.gamma") or those of diffusers
// ("decoder.mid_block.resnets.0.norm1.gamma"), each with or without a prefix such as "vae.". Names
// are without ".weight" and ".bias"; norms' are whole. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>
#include <vector>

#include "autoencoder_kl_names.h"

namespace heddle::vae {

class WanNames {
 public:
  // Nothing when the file does not hold that side.
  static std::optional<WanNames> find(const Checkpoint& file, VaeSide side);

  std::string conv_in() const { return side_ + (diffusers_ ? "conv_in" : "conv1"); }
  std::string conv_out() const { return side_ + (diffusers_ ? "conv_out" : "head.2"); }
  std::string norm_out() const { return side_ + (diffusers_ ? "norm_out.gamma" : "head.0.gamma"); }
  // Between the latent and this side.
  std::string quant_conv() const;
  std::string mid_resnet(int index) const;
  std::string mid_attention() const {
    return side_ + (diffusers_ ? "mid_block.attentions.0" : "middle.1");
  }

  // Residual blocks and changes of size, in the order in which data passes them.
  struct Step {
    std::string module;  // of a change of size its convolution
    bool is_resample = false;
    std::string time_conv = {};  // where it changes the number of frames, too, on videos
  };
  struct Level {
    std::vector<Step> steps;
    bool changes_time = false;  // with its size, on videos
  };
  // Whether each level has a shortcut around it, as those of Wan 2.2 and Qwen-Image 2.1. Otherwise
  // all is one level.
  bool has_levels() const { return leveled_; }
  std::vector<Level> levels(const Checkpoint& file) const;

  struct Resnet {
    std::string norm1, conv1, norm2, conv2, shortcut;
  };
  Resnet in_resnet(const std::string& module) const;

 private:
  WanNames(const Checkpoint& file, bool diffusers, VaeSide side, std::string prefix);
  std::vector<Step> flat_steps(const Checkpoint& file) const;
  Level level(const Checkpoint& file, int number) const;

  bool diffusers_, decoder_, leveled_;
  std::string prefix_, side_;  // "vae.", "vae.decoder."
};

}  // namespace heddle::vae
