// plugins/vae/hunyuan_vae_names.h - where the weights of HunyuanVideo 1.0's autoencoder are in a
// checkpoint, by the names of ComfyUI's files or those of diffusers. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>

#include "plugins/blocks/slots.h"

namespace heddle::vae {

// Where the tensors of one side are. Levels count in the order in which a side takes them.
class HunyuanVaeNames {
 public:
  static std::optional<HunyuanVaeNames> find(const Checkpoint& file, bool decoder) {
    const std::string side = decoder ? "decoder." : "encoder.";
    for (const bool diffusers : {false, true}) {
      const auto prefix = blocks::prefix_before(
          file, side + (diffusers ? "mid_block.resnets.0" : "mid.block_1") + ".norm1.weight");
      if (prefix && file.has(*prefix + side + "conv_in.conv.weight"))
        return HunyuanVaeNames(file, decoder, diffusers, *prefix);
    }
    return std::nullopt;
  }

  std::string conv_in() const { return side_ + "conv_in.conv"; }
  std::string conv_out() const { return side_ + "conv_out.conv"; }
  std::string norm_out() const { return side_ + (diffusers_ ? "conv_norm_out" : "norm_out"); }
  // The convolution of one pixel between a side and the latent.
  std::string quant() const { return prefix_ + (decoder_ ? "post_quant_conv" : "quant_conv"); }
  std::string mid_resnet(int i) const {
    return diffusers_ ? side_ + "mid_block.resnets." + std::to_string(i)
                      : side_ + "mid.block_" + std::to_string(i + 1);
  }
  std::string resnet(int level, int i) const {
    return this->level(level) + (diffusers_ ? "resnets." : "block.") + std::to_string(i);
  }
  std::string shortcut(const std::string& resnet) const {
    return resnet + (diffusers_ ? ".conv_shortcut.conv" : ".nin_shortcut.conv");
  }
  std::string resample(int level) const {
    const std::string name = decoder_ ? "upsample" : "downsample";
    return this->level(level) + name + (diffusers_ ? "rs.0" : "") + ".conv.conv";
  }
  std::string attention_norm() const { return attention() + (diffusers_ ? "group_norm" : "norm"); }
  // which: "q", "k" or "v". Some files have filters for matrices, under a name with "conv" behind.
  std::string projection(const Checkpoint& file, const char* which) const {
    return either(file, attention() + (diffusers_ ? "to_" : "") + which);
  }
  std::string proj_out(const Checkpoint& file) const {
    return either(file, attention() + (diffusers_ ? "to_out.0" : "proj_out"));
  }
  int levels() const { return levels_; }
  int resnets(const Checkpoint& file, int level) const {
    return blocks::layer_count(file, this->level(level) + (diffusers_ ? "resnets." : "block."));
  }

 private:
  HunyuanVaeNames(const Checkpoint& file, bool decoder, bool diffusers, const std::string& prefix)
      : decoder_(decoder),
        diffusers_(diffusers),
        prefix_(prefix),
        side_(prefix + (decoder ? "decoder." : "encoder.")),
        levels_(blocks::layer_count(file, all_levels())) {}
  static std::string either(const Checkpoint& file, const std::string& module) {
    return file.has(module + ".conv.weight") ? module + ".conv" : module;
  }
  std::string attention() const {
    return side_ + (diffusers_ ? "mid_block.attentions.0." : "mid.attn_1.");
  }
  std::string all_levels() const {
    return side_ + (decoder_ ? "up" : "down") + (diffusers_ ? "_blocks." : ".");
  }
  // ComfyUI's files count a decoder's levels from its end.
  std::string level(int i) const {
    return all_levels() + std::to_string(decoder_ && !diffusers_ ? levels_ - 1 - i : i) + ".";
  }

  bool decoder_, diffusers_;
  std::string prefix_, side_;
  int levels_;
};

}  // namespace heddle::vae
