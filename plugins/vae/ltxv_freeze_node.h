// LTXVFreezeLatent: a latent that stays as it is while others beside it are drawn. On the host;
// stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

struct LTXVFreezeLatent {
  static constexpr Info info{"LTXVFreezeLatent",
                             1,
                             "LTXV Freeze Latent",
                             "model/latent/ltxv",
                             "Gives a latent of a video, or of sound, a noise mask of zeros.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_PASS, "", "LATENT"};
  static constexpr Output<Value> out{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(latent, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
