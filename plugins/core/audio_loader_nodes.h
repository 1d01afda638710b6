// Loaders of models of sound, and of those that make latents larger, under ComfyUI's names. They
// read headers and configurations only. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "loader_nodes.h"

namespace heddle::loaders {

struct LTXVAudioVAELoader {
  static constexpr Info info{"LTXVAudioVAELoader",
                             1,
                             "Load LTXV Audio VAE",
                             "model/loaders",
                             "The audio autoencoder and the vocoder of a checkpoint of LTX 2.",
                             kLoader};
  static constexpr Input<std::string> ckpt_name{"ckpt_name",
                                                Widget{.source = "checkpoints", .type = "COMBO"}};
  static constexpr Output<Value> vae{"Audio VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(ckpt_name, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
