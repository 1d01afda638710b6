// plugins/vae/autoencoder_ltxv_options.h - what the weights of LTX-Video's autoencoders do not
// tell: from the model's config (diffusers' names), the metadata "config" of the file (the
// publishers' names), or else by version. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <vector>

#include "autoencoder_ltxv_names.h"

namespace heddle::vae {

struct LtxvVaeOptions {
  // Of one side. Throws where a number in the config is none that the autoencoder can do with.
  static LtxvVaeOptions read(const Checkpoint& file, const Value& config, const LtxvVaeNames& names,
                             VaeSide side);

  bool is_causal = false;  // of a decoder; encoders are
  bool mirrors = false;    // what is around frames
  // Whether the block of this number adds its own input, where that is told.
  std::optional<bool> residual(std::size_t number) const;
  // A decoder that is told a noise level: that, and how much noise its latents are given.
  bool reads_level = false;
  double level = 0.05, level_scale = 1000, noise_share = 0.025;

 private:
  std::vector<std::optional<bool>> residuals_;
};

}  // namespace heddle::vae
