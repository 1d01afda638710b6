// plugins/vae/autoencoder_ltxv_names.h - where the weights of LTX-Video's autoencoder are in a
// file: the original names ("decoder.up_blocks.4.conv1.conv.weight"), which count what a side does
// one after another, or those of diffusers ("decoder.up_blocks.2.conv_in.conv1.conv.weight"), with
// whatever prefix before them. Immutable, any thread.
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
  // Of which later version the side is, in words; nullptr: of 0.9.0.
  const char* of_later_version() const;

 private:
  LtxvVaeNames(const Checkpoint& file, bool diffusers, VaeSide side, std::string prefix)
      : file_(file), diffusers_(diffusers), side_(side), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  VaeSide side_;
  std::string prefix_;
};

}  // namespace heddle::vae
