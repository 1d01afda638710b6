// plugins/vae/autoencoder_ltxv_names.h - where the weights of LTX-Video's autoencoder are in a
// file: the original names ("decoder.up_blocks.4.conv1.conv.weight"), which count what a side does
// one after another, or those of diffusers ("decoder.up_blocks.2.conv_in.conv1.conv.weight"), with
// whatever prefix before them. There are two orders of blocks in diffusers: that of 0.9.0, and one
// in which residual blocks and changes of size alternate. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>

#include "autoencoder_kl_names.h"

namespace heddle::vae {

class LtxvVaeNames {
 public:
  // Nothing when the file has no such side.
  static std::optional<LtxvVaeNames> find(const Checkpoint& file, VaeSide side);

  // A tensor of the side by its original name without "decoder." or "encoder.".
  std::string one(const std::string& original) const;
  // Of each channel of the latent.
  std::string means() const;
  std::string deviations() const;
  // What counts levels in diffusers' settings, from the pictures on; 0 by the original names.
  int levels() const { return levels_; }
  // Whether the file has an encoder whose changes of size keep the input's own numbers: that of
  // 0.9.5 and later. False where it has none.
  bool has_gathering_encoder() const;

 private:
  LtxvVaeNames(const Checkpoint& file, bool diffusers, VaeSide side, std::string prefix);
  std::string to_diffusers(std::string name) const;

  Checkpoint file_;
  bool diffusers_;
  VaeSide side_;
  std::string prefix_;
  bool alternates_ = false;
  int levels_ = 0;
};

}  // namespace heddle::vae
