// The nodes that tell HunyuanVideo 1.0 and 1.5 which frames of a video are given, and the super
// resolution of 1.5 which latent is to be made sharper: what they read beside the text. Formulas:
// ComfyUI's nodes of these names. Stateless.
#pragma once

#include <heddle/node.hpp>

#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

struct HunyuanVideo15ImageToVideo {
  static constexpr Info info{"HunyuanVideo15ImageToVideo", 1, "",
                             "model/conditioning/hunyuan video",
                             "A video that begins with given frames."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::side(848)};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 33, .min = 1, .max = 16384, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Input<Value> clip_vision_output = wan_ports::seen(
      "clip_vision_output", "What sigclip_vision_patch14_384 saw of the first frame.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, start_image,
                    clip_vision_output, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct HunyuanImageToVideo {
  static constexpr const char* kKinds[] = {"v1 (concat)", "v2 (replace)", "custom", nullptr};
  static constexpr Widget kKind{
      .choices = kKinds, .extra = R"({"advanced": true, "multiselect": false})", .type = "COMBO"};

  static constexpr Info info{"HunyuanImageToVideo", 1, "HunyuanImageToVideo",
                             "model/conditioning/hunyuan video",
                             "A video that begins with a picture, by HunyuanVideo 1.0: it lies "
                             "beside the latent, or is its first frame."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::side(848)};
  static constexpr Input<std::int64_t> height{"height", wan_ports::kHeight};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 53, .min = 1, .max = 16384, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<std::string> guidance_type{"guidance_type", kKind,
                                                    "By which model it is drawn."};
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frame.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports = heddle::ports(positive, vae, width, height, length, batch_size,
                                              guidance_type, start_image, positive_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct HunyuanVideo15SuperResolution {
  static constexpr Info info{"HunyuanVideo15SuperResolution", 1,
                             "Hunyuan Video 1.5 Super Resolution",
                             "model/conditioning/hunyuan video",
                             "Shows the model a resized latent that it is to make sharper."};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr Input<double> noise_augmentation{
      "noise_augmentation",
      Widget{.number = 0.7, .max = 1, .step = 0.01, .extra = R"({"advanced": true})"},
      "How much noise is mixed into the latent that the model is shown."};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_PASS,
                                    "Of start_image.", "VAE"};
  static constexpr Input<Tensor> start_image =
      wan_ports::picture("start_image", "The first frames.");
  static constexpr Input<Value> clip_vision_output = wan_ports::seen(
      "clip_vision_output", "What sigclip_vision_patch14_384 saw of the first frame.");
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent_out{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(positive, negative, latent, noise_augmentation, vae, start_image,
                    clip_vision_output, positive_out, negative_out, latent_out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
