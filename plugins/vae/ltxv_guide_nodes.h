// LTXVAddGuide, LTXVCropGuides: pictures that a video of LTX-Video passes at given times. They
// stand behind the video's own frames in the latent, and the conditionings tell of them
// (ltxv_guide_fields.h). LTXVImgToVideoInplace puts pictures into the frames themselves.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

struct LTXVAddGuide {
  static constexpr Info info{"LTXVAddGuide", 2, "", "model/conditioning/ltxv",
                             "Adds pictures to a latent that a video passes at a frame; the noise "
                             "mask keeps them by the strength."};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Value> latent_in{"latent", 0, "", "LATENT"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_HOST, "(T, H, W, C) f32, 0 to 1",
                                       "IMAGE"};
  static constexpr Input<std::int64_t> frame_idx{"frame_idx", Widget{.min = -9999, .max = 9999},
                                                 "Of the video; below 0 from its end."};
  static constexpr Input<double> strength{"strength",
                                          Widget{.number = 1, .min = 0, .max = 10, .step = 0.01}};
  static constexpr Input<Value> attention_mask{
      "attention_mask", HEDDLE_PORT_OPTIONAL,
      "How much the video looks at each part of the pictures, times the strength.", "MASK"};
  static constexpr Input<Value> iclora_parameters{"iclora_parameters", HEDDLE_PORT_OPTIONAL,
                                                  "Of GetICLoRAParameters: how large the pictures "
                                                  "are that the LoRA was made for.",
                                                  "IC_LORA_PARAMETERS"};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, latent_in, image, frame_idx, strength, attention_mask,
                    iclora_parameters, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// The same of frames that are encoded already.
struct LTXVAddLatentGuide {
  static constexpr Info info{
      "LTXVAddLatentGuide", 1, "LTXV Add Latent Guide", "model/conditioning/ltxv",
      "Adds frames of another latent to a latent, as LTXVAddGuide adds pictures. Of a smaller one "
      "each place is for as many of the latent's as it is smaller."};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Value> latent_in{"latent", 0, "", "LATENT"};
  static constexpr Input<Value> guiding_latent{"guiding_latent", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> latent_idx{"latent_idx", Widget{.min = -9999, .max = 9999},
                                                  "Frame of the latent; below 0 before its first."};
  static constexpr Input<double> strength{"strength",
                                          Widget{.number = 1, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Input<Value> attention_mask{
      "attention_mask", HEDDLE_PORT_OPTIONAL,
      "How much the video looks at each part of the guide, times the strength.", "MASK"};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, latent_in, guiding_latent, latent_idx, strength,
                    attention_mask, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LTXVCropGuides {
  static constexpr Info info{"LTXVCropGuides", 1, "", "conditioning/video_models",
                             "Leaves out the frames that LTXVAddGuide added."};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> latent_in{"latent", 0, "", "LATENT"};
  static constexpr Output<Value> positive_out{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative_out{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(positive, negative, latent_in, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LTXVImgToVideoInplace {
  static constexpr Info info{
      "LTXVImgToVideoInplace", 1, "", "model/conditioning/ltxv",
      "Puts pictures into the first frames of a latent; the noise mask keeps "
      "them by the strength."};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_HOST, "(T, H, W, C) f32, 0 to 1",
                                       "IMAGE"};
  static constexpr Input<Value> latent_in{"latent", 0, "", "LATENT"};
  static constexpr Input<double> strength{"strength", Widget{.number = 1, .min = 0, .max = 1}};
  static constexpr Input<bool> bypass{"bypass", Widget{}, "The latent as it is."};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(vae, image, latent_in, strength, bypass, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
