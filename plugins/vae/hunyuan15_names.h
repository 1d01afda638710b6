// plugins/vae/hunyuan15_names.h - where the weights of HunyuanVideo 1.5's autoencoder are in a
// checkpoint, by the publisher's names or those of diffusers, and in which order a side takes them.
// Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>
#include <vector>

#include "plugins/blocks/slots.h"

namespace heddle::vae {

// Where the tensors of one side are.
class Hunyuan15Names {
 public:
  static std::optional<Hunyuan15Names> find(const Checkpoint& file, bool decoder) {
    const std::string side = decoder ? "decoder." : "encoder.";
    for (const bool diffusers : {false, true}) {
      const auto prefix = blocks::prefix_before(
          file, side + (diffusers ? "mid_block.resnets.0" : "mid.block_1") + ".norm1.gamma");
      if (prefix && file.has(*prefix + side + "conv_in.conv.weight"))
        return Hunyuan15Names(decoder, diffusers, *prefix + side);
    }
    return std::nullopt;
  }

  std::string conv_in() const { return side_ + "conv_in.conv"; }
  std::string conv_out() const { return side_ + "conv_out.conv"; }
  std::string norm_out() const { return side_ + "norm_out.gamma"; }
  std::string mid_resnet(int i) const {
    return diffusers_ ? side_ + "mid_block.resnets." + std::to_string(i)
                      : side_ + "mid.block_" + std::to_string(i + 1);
  }
  std::string attention() const {
    return side_ + (diffusers_ ? "mid_block.attentions.0" : "mid.attn_1");
  }
  std::string resnet(int level, int i) const {
    return this->level(level) + (diffusers_ ? "resnets." : "block.") + std::to_string(i);
  }
  std::string resample(int level) const {
    const std::string name = decoder_ ? "upsample" : "downsample";
    return this->level(level) + name + (diffusers_ ? "rs.0" : "") + ".conv.conv";
  }
  std::string projection(const char* which) const {
    return attention() + (diffusers_ ? ".to_" : ".") + which;
  }
  std::string proj_out() const { return attention() + ".proj_out"; }
  int levels(const Checkpoint& file) const { return blocks::layer_count(file, levels()); }
  int resnets(const Checkpoint& file, int level) const {
    return blocks::layer_count(file, this->level(level) + (diffusers_ ? "resnets." : "block."));
  }

 private:
  Hunyuan15Names(bool decoder, bool diffusers, std::string side)
      : decoder_(decoder), diffusers_(diffusers), side_(std::move(side)) {}
  std::string levels() const {
    return side_ + (decoder_ ? "up" : "down") + (diffusers_ ? "_blocks." : ".");
  }
  std::string level(int i) const { return levels() + std::to_string(i) + "."; }

  bool decoder_, diffusers_;
  std::string side_;
};

enum class Hunyuan15Part { in, resnet, attention, resample, out };
struct Hunyuan15Step {
  Hunyuan15Part kind;
  std::string path, module;
  int stage;
};

// What a side does, one after another, each with its path in the graph and its stage of videos.
std::vector<Hunyuan15Step> steps_of(const Checkpoint& file, const Hunyuan15Names& names,
                                    bool decoder);

}  // namespace heddle::vae
