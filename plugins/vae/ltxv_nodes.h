// LTXVImgToVideo: the first frames of a video of LTX-Video.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

struct LTXVImgToVideo {
  static constexpr Widget kSide{.number = 768, .min = 64, .max = 16384, .step = 32};

  static constexpr Info info{"LTXVImgToVideo", 1, "", "conditioning/video_models",
                             "A latent of a video that begins with a picture, or with several; the "
                             "noise mask keeps them by the strength."};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_HOST, "(T, H, W, C) f32, 0 to 1",
                                       "IMAGE"};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 512, .min = 64, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 97, .min = 9, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Input<double> strength{"strength", Widget{.number = 1, .min = 0, .max = 1}};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, image, width, height, length, batch_size, strength,
                    positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
