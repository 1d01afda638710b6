// Pictures without what a mask selects: as a latent that is drawn anew there, and as conditioning
// for models that read what is kept.
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

struct InpaintModelConditioning {
  static constexpr Info info{"InpaintModelConditioning", 1, "InpaintModelConditioning",
                             "conditioning/inpaint",
                             "A picture with a part masked out as conditioning, and the whole one "
                             "as latent."};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Tensor> pixels{"pixels", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                                        "IMAGE"};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_HOST, "1: is drawn anew", "MASK"};
  static constexpr Input<bool> noise_mask{"noise_mask", Widget{.number = 1}};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(positive, negative, vae, pixels, mask, noise_mask,
                                              positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct InstructPixToPixConditioning {
  static constexpr Info info{"InstructPixToPixConditioning", 1, "", "conditioning/instructpix2pix",
                             "A picture as conditioning, for models that draw by it, and an empty "
                             "latent of its size."};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Tensor> pixels{"pixels", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                                        "IMAGE"};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, pixels, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
