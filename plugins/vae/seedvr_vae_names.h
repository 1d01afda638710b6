// plugins/vae/seedvr_vae_names.h - where the weights of SeedVR2's autoencoder are in a checkpoint,
// and in which order a side takes them. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>
#include <vector>

namespace heddle::vae {

// Where the tensors of one side are.
class SeedvrVaeNames {
 public:
  static std::optional<SeedvrVaeNames> find(const Checkpoint& file, bool decoder);

  std::string conv_in() const { return side_ + "conv_in"; }
  std::string conv_out() const { return side_ + "conv_out"; }
  std::string norm_out() const { return side_ + "conv_norm_out"; }
  std::string mid_resnet(int i) const { return side_ + "mid_block.resnets." + std::to_string(i); }
  std::string attention() const { return side_ + "mid_block.attentions.0"; }
  std::string resnet(int level, int i) const {
    return this->level(level) + "resnets." + std::to_string(i);
  }
  // The module of a level that changes its size; both have a convolution, "conv".
  std::string resample(int level) const {
    return this->level(level) + (decoder_ ? "upsamplers.0" : "downsamplers.0");
  }
  int levels(const Checkpoint& file) const;
  int resnets(const Checkpoint& file, int level) const;

 private:
  SeedvrVaeNames(bool decoder, std::string side) : decoder_(decoder), side_(std::move(side)) {}
  std::string all_levels() const { return side_ + (decoder_ ? "up_blocks." : "down_blocks."); }
  std::string level(int i) const { return all_levels() + std::to_string(i) + "."; }

  bool decoder_;
  std::string side_;
};

enum class SeedvrVaePart { in, resnet, attention, resample, out };
struct SeedvrVaeStep {
  SeedvrVaePart kind;
  std::string path, module;
  int stage;
};

// What a side does, one after another, each with its path in the graph and its stage of videos.
std::vector<SeedvrVaeStep> steps_of(const Checkpoint& file, const SeedvrVaeNames& names,
                                    bool decoder);

}  // namespace heddle::vae
