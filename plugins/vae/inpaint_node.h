// VAEEncodeForInpaint: a picture without what a mask selects, as a latent that is drawn anew there.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

struct VaeEncodeForInpaint {
  static constexpr Info info{"VAEEncodeForInpaint", 1, "VAE Encode (for Inpainting)",
                             "latent/inpaint",
                             "Encodes pictures with grey where the mask is, and gives the latent "
                             "the mask, grown by some pixels."};
  static constexpr Input<Tensor> pixels{"pixels", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                                        "IMAGE"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_HOST, "1: is drawn anew", "MASK"};
  static constexpr Input<std::int64_t> grow_mask_by{
      "grow_mask_by", Widget{.number = 6, .min = 0, .max = 64, .step = 1}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(pixels, vae, mask, grow_mask_by, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
