// SeedVR2TemporalChunk, SeedVR2TemporalMerge: the latent of a video in parts that are drawn one
// after another, and whole again. On the host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::samplers {

struct SeedVR2TemporalChunk {
  static constexpr Widget kModes{.extra = R"({"options": [
      {"key": "auto", "inputs": {"required": {}}},
      {"key": "manual", "inputs": {"required": {
        "frames_per_chunk": ["INT", {"default": 21, "min": 1, "max": 16384, "step": 4}]}}}]})"};

  static constexpr Info info{
      "SeedVR2TemporalChunk",
      1,
      "Split SeedVR2 Latent",
      "model/latent/batch",
      "A video's latent in overlapping parts of so many frames of the video. auto: as many as "
      "ComfyUI takes with 24 GiB of free memory, whatever the device has, so that results are the "
      "same on all.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> temporal_overlap{"temporal_overlap",
                                                        Widget{.min = 0, .max = 16384}};
  static constexpr Input<blocks::Variant> chunking_mode{"chunking_mode", kModes};
  static constexpr Output<Value> latents{"latents", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr Output<std::int64_t> overlap{"temporal_overlap"};
  static constexpr auto ports =
      heddle::ports(latent, temporal_overlap, chunking_mode, latents, overlap);
  static void execute(Context& ctx);
};

struct SeedVR2TemporalMerge {
  static constexpr Info info{
      "SeedVR2TemporalMerge",
      1,
      "Merge SeedVR2 Latents",
      "model/latent/batch",
      "The parts of a video's latent one after another, each faded into the next where they "
      "overlap.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> latents{"latents", HEDDLE_PORT_LIST, "", "LATENT"};
  static constexpr Input<std::int64_t> temporal_overlap{
      "temporal_overlap", Widget{.min = 0, .max = 16384, .extra = R"({"forceInput": true})"}};
  static constexpr Output<Value> out{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(latents, temporal_overlap, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
