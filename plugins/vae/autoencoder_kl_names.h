// plugins/vae/autoencoder_kl_names.h - where the weights of a KL autoencoder are in a checkpoint:
// names of diffusers
// ("decoder.up_blocks.0.resnets.0.conv1") or the original ones of single files
// ("decoder.up.3.block.0.conv1", whose up levels count from the output), each with or without a
// prefix such as "vae.". Levels here count in the order in which data passes them. Names are
// without ".weight" and ".bias". Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <string>

namespace heddle::vae {

enum class VaeSide { encoder, decoder };

class VaeNames {
 public:
  // Layout and prefix of this file for one side; nothing when it does not hold that side.
  static std::optional<VaeNames> find(const Checkpoint& file, VaeSide side);

  // The same weights as an original file without a prefix has them.
  VaeNames original() const;

  int levels() const { return levels_; }
  // How many residual blocks a level has.
  int depth(const Checkpoint& file, int level) const;
  std::string conv_in() const { return side_ + "conv_in"; }
  std::string conv_out() const { return side_ + "conv_out"; }
  std::string norm_out() const { return side_ + (diffusers_ ? "conv_norm_out" : "norm_out"); }
  std::string resnet(int level, int index) const;
  std::string mid_resnet(int index) const;
  // Whether the decoder mixes frames, as Stable Video Diffusion's does: behind what a residual
  // block makes of a frame come filters of three frames, and a whole tensor, `mix`.
  bool mixes_frames() const { return mixes_frames_; }
  struct Frames {
    std::string norm1, conv1, norm2, conv2, mix;
  };
  Frames frames(const std::string& resnet) const;
  // The filter of three frames behind the last one.
  std::string frames_out() const {
    return side_ + (diffusers_ ? "time_conv_out" : "conv_out.time_mix_conv");
  }
  // The 1x1 convolution of a residual block that changes the number of channels.
  std::string shortcut(const std::string& resnet) const {
    return resnet + (diffusers_ ? ".conv_shortcut" : ".nin_shortcut");
  }
  // The convolution of the change of size after a level; the last level has none.
  std::string resample(int level) const;
  // The convolution between the latent and this side, which newer models do not have.
  std::string quant_conv() const {
    return (is_quant_inside_ ? side_ : prefix_) + (decoder_ ? "post_quant_conv" : "quant_conv");
  }
  // FLUX.2's statistics of packed latents, a whole tensor's name; kind: "mean" or "var".
  std::string statistic(const char* kind) const { return prefix_ + "bn.running_" + kind; }

  struct Attention {
    std::string norm, q, k, v, proj;
  };
  Attention mid_attention(const Checkpoint& file) const;

  const std::string& prefix() const { return prefix_; }

 private:
  std::string level(int index) const;

  std::string spatial() const { return diffusers_ && mixes_frames_ ? ".spatial_res_block" : ""; }

  bool diffusers_ = true, decoder_ = true, is_quant_inside_ = false, mixes_frames_ = false;
  int levels_ = 0;
  std::string prefix_, side_;  // "vae.", "vae.decoder."
};

}  // namespace heddle::vae
