// How large latents are. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct GetLatentSize {
  static constexpr Info info{"GetLatentSize",
                             1,
                             "Get Image/Video Latent Size",
                             "model/latent",
                             "How large a latent is, in cells, and how many there are; of pictures "
                             "with their sound, the pictures.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_PASS, "", "LATENT"};
  static constexpr Output<std::int64_t> width{"width"};
  static constexpr Output<std::int64_t> height{"height"};
  static constexpr Output<std::int64_t> frames{"frames"};
  static constexpr Output<std::int64_t> batch_size{"batch_size"};
  static constexpr auto ports = heddle::ports(latent, width, height, frames, batch_size);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
