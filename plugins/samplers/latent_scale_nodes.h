// Latents in other sizes: LatentUpscale and LatentUpscaleBy. On the host; stateless. All methods
// give means of cells, so latents keep the units they have.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

inline constexpr const char* kLatentScaleMethods[] = {"nearest-exact", "bilinear", "area",
                                                      "bicubic",       "bislerp",  nullptr};

struct LatentUpscale {
  static constexpr Widget kPixels{.number = 512, .min = 0, .max = 16384, .step = 8};
  static constexpr const char* kCrops[] = {"disabled", "center", nullptr};

  static constexpr Info info{"LatentUpscale",
                             1,
                             "Upscale Latent",
                             "latent",
                             "For pictures of this size; a side of 0 follows from the other.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> upscale_method{"upscale_method",
                                                     {.choices = kLatentScaleMethods}};
  static constexpr Input<std::int64_t> width{"width", kPixels};
  static constexpr Input<std::int64_t> height{"height", kPixels};
  static constexpr Input<std::string> crop{"crop", {.choices = kCrops}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, upscale_method, width, height, crop, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentUpscaleBy {
  static constexpr Info info{
      "LatentUpscaleBy", 1, "Upscale Latent By", "latent", "Both sides times a factor.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> upscale_method{"upscale_method",
                                                     {.choices = kLatentScaleMethods}};
  static constexpr Input<double> scale_by{"scale_by",
                                          {.number = 1.5, .min = 0.01, .max = 8, .step = 0.01}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, upscale_method, scale_by, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
