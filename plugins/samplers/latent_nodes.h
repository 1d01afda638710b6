// Nodes that make latents and rearrange their batch. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

inline constexpr Widget kBatchSize{.number = 1, .min = 1, .max = 4096};

struct EmptyLatentImage {
  static constexpr Widget kPixels{.number = 512, .min = 16, .max = 16384, .step = 8};

  static constexpr Info info{"EmptyLatentImage",
                             2,
                             "Empty Latent Image",
                             "latent",
                             "A latent of zeros: what a picture drawn from text alone starts from. "
                             "Samplers give it the channels that their model reads.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{"width", kPixels, "In pixels."};
  static constexpr Input<std::int64_t> height{"height", kPixels, "In pixels."};
  static constexpr Input<std::int64_t> batch_size{"batch_size", kBatchSize, "Pictures at once."};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, batch_size, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct EmptySD3LatentImage {
  static constexpr Widget kPixels{.number = 1024, .min = 16, .max = 16384, .step = 16};

  static constexpr Info info{
      "EmptySD3LatentImage", 2, "", "latent/sd3", "A latent of zeros with 16 channels.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{"width", kPixels, "In pixels."};
  static constexpr Input<std::int64_t> height{"height", kPixels, "In pixels."};
  static constexpr Input<std::int64_t> batch_size{"batch_size", kBatchSize, "Pictures at once."};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, batch_size, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct RepeatLatentBatch {
  static constexpr Info info{"RepeatLatentBatch", 1, "Repeat Latent Batch", "latent/batch",
                             "The batch several times over."};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> amount{"amount", Widget{.number = 1, .min = 1, .max = 64}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, amount, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentFromBatch {
  static constexpr Info info{"LatentFromBatch",
                             1,
                             "Get Latent From Batch",
                             "model/latent/batch",
                             "Some items of a batch, which keep the noise they had in it; a "
                             "negative index counts from its end.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", HEDDLE_PORT_PASS, "", "LATENT"};
  static constexpr Input<std::int64_t> batch_index{"batch_index",
                                                   Widget{.min = -16384, .max = 16384}};
  static constexpr Input<std::int64_t> length{"length", Widget{.number = 1, .min = 1, .max = 64}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, batch_index, length, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SetLatentNoiseMask {
  static constexpr Info info{"SetLatentNoiseMask",
                             1,
                             "Set Latent Noise Mask",
                             "latent/inpaint",
                             "Only where the mask is 1 is drawn anew.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", HEDDLE_PORT_PASS, "", "LATENT"};
  static constexpr Input<Value> mask{"mask", HEDDLE_PORT_PASS, "", "MASK"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, mask, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
