// Latents of zeros for more families of models, sizes in pixels. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct EmptyFlux2LatentImage {
  static constexpr Info info{"EmptyFlux2LatentImage",
                             1,
                             "Empty Flux 2 Latent",
                             "model/latent/flux",
                             "A latent of zeros for FLUX.2: 128 channels, 16 pixels a cell.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1024, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 1024, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyHunyuanLatentVideo {
  static constexpr Info info{
      "EmptyHunyuanLatentVideo",
      1,
      "EmptyHunyuanLatentVideo",
      "latent/video",
      "A latent of zeros for video: 16 channels, 8 pixels a cell, 4 frames a step.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 848, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 480, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 25, .min = 1, .max = 16384, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyARVideoLatent {
  static constexpr Widget kWidth{.number = 832, .min = 16, .max = 8192, .step = 16},
      kHeight{.number = 480, .min = 16, .max = 8192, .step = 16};
  static constexpr Info info{
      "EmptyARVideoLatent",
      1,
      "",
      "model/latent/autoregressive",
      "A latent of zeros for causal Wan 2.1: 16 channels, 8 pixels a cell, 4 frames a step.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{"width", kWidth};
  static constexpr Input<std::int64_t> height{"height", kHeight};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 81, .min = 1, .max = 1024, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 64}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyHunyuanVideo15Latent {
  static constexpr Info info{
      "EmptyHunyuanVideo15Latent",
      1,
      "Empty HunyuanVideo 1.5 Latent",
      "model/latent/hunyuan video",
      "A latent of zeros for HunyuanVideo 1.5: 32 channels, 16 pixels a cell, 4 frames a step.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 848, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 480, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 25, .min = 1, .max = 16384, .step = 4}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyHunyuanImageLatent {
  static constexpr Info info{"EmptyHunyuanImageLatent",
                             1,
                             "EmptyHunyuanImageLatent",
                             "latent",
                             "A latent of zeros for HunyuanImage: 64 channels, 32 pixels a cell.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 2048, .min = 64, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 2048, .min = 64, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyLTXVLatentVideo {
  static constexpr Info info{
      "EmptyLTXVLatentVideo",
      1,
      "",
      "latent/video/ltxv",
      "A latent of zeros for LTX video: 128 channels, 32 pixels a cell, 8 frames a step.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 768, .min = 64, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 512, .min = 64, .max = 16384, .step = 32}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 97, .min = 1, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyMochiLatentVideo {
  static constexpr Info info{
      "EmptyMochiLatentVideo",
      1,
      "",
      "latent/video",
      "A latent of zeros for Mochi: 12 channels, 8 pixels a cell, 6 frames a step.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 848, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 480, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 25, .min = 7, .max = 16384, .step = 6}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyCosmosLatentVideo {
  static constexpr Info info{
      "EmptyCosmosLatentVideo",
      1,
      "",
      "latent/video",
      "A latent of zeros for Cosmos: 16 channels, 8 pixels a cell, 8 frames a step.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1280, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 704, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> length{
      "length", Widget{.number = 121, .min = 1, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, length, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyChromaRadianceLatentImage {
  static constexpr Info info{"EmptyChromaRadianceLatentImage",
                             1,
                             "",
                             "latent/chroma_radiance",
                             "A picture of zeros for Chroma Radiance, which has no autoencoder.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1024, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 1024, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptyQwenImageLayeredLatentImage {
  static constexpr Info info{"EmptyQwenImageLayeredLatentImage",
                             1,
                             "Empty Qwen Image Layered Latent",
                             "model/latent/qwen",
                             "A latent of zeros for layered Qwen-Image: the picture and its layers "
                             "along the axis of time.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 640, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 640, .min = 16, .max = 16384, .step = 16}};
  static constexpr Input<std::int64_t> layers{
      "layers", Widget{.number = 3, .min = 0, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  Widget{.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, layers, batch_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
