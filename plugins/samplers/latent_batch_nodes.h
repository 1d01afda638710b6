// Nodes that put latents together into batches and take them apart, and noise on pictures. On the
// host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::samplers {

struct BatchLatentsNode {
  static constexpr Widget kLatents{
      .extra = R"({"template": {"input": {"required": {"latent": ["LATENT", {}]}},
                   "prefix": "latent", "min": 1, "max": 50}})"};

  static constexpr Info info{"BatchLatentsNode",
                             1,
                             "Batch Latents",
                             "model/latent/batch",
                             "All latents in one batch, in the size of the first.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<blocks::Growing> latents{"latents", kLatents};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(latents, out);
  static void execute(Context& ctx);
};

struct RebatchLatents {
  static constexpr Info info{"RebatchLatents",
                             1,
                             "Rebatch Latents",
                             "latent/batch",
                             "The items of all latents of a list in batches of another size; each "
                             "keeps the noise that it had.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> latents{"latents", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  {.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"LATENT", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr auto ports = heddle::ports(latents, batch_size, out);
  static void execute(Context& ctx);
};

struct ResolutionBucket {
  static constexpr Info info{"ResolutionBucket",
                             1,
                             "Resolution Bucket",
                             "model/training",
                             "Latents of one size in one batch each, with their conditionings.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> latents{"latents", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_LIST | HEDDLE_PORT_PASS,
                                             "", "CONDITIONING"};
  static constexpr Output<Value> out{"latents", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr Output<Value> conditioning_out{"conditioning", HEDDLE_PORT_LIST, "",
                                                  "CONDITIONING"};
  static constexpr auto ports = heddle::ports(latents, conditioning, out, conditioning_out);
  static void execute(Context& ctx);
};

struct ImageAddNoise {
  static constexpr Info info{
      "ImageAddNoise", 1, "ImageAddNoise", "image", "Normal noise of a seed on top of a picture.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::uint64_t> seed{"seed", Widget{}};
  static constexpr Input<double> strength{"strength", {.number = 0.5, .max = 1, .step = 0.01}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, seed, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
