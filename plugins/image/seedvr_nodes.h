// Pictures before and after SeedVR2, which makes them sharper: in the sizes that its autoencoder
// codes, and back with the colours that they had. On the host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::image {

struct SeedVR2Preprocess {
  static constexpr Info info{
      "SeedVR2Preprocess",
      1,
      "Pre-Process SeedVR2 Input",
      "image/pre-processors",
      "Pictures as SeedVR2 takes them: without alpha, black on the right and below up to multiples "
      "of 16 pixels; of several the last again, up to 4 n + 1.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> resized_images{"resized_images", 0, "", "IMAGE"};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(resized_images, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SeedVR2PostProcessing {
  static constexpr const char* kMethods[] = {"lab", "wavelet", "adain", "none", nullptr};

  static constexpr Info info{
      "SeedVR2PostProcessing",
      1,
      "Post-Process SeedVR2 Output",
      "image/post-processors",
      "What SeedVR2 drew in the size and number of the pictures that it was given, with their "
      "alpha and their colours: by histograms of CIE Lab (lab), by low frequencies (wavelet), by "
      "mean and deviation (adain). Sides become even.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<Tensor> original_resized_images{"original_resized_images", 0, "", "IMAGE"};
  static constexpr Input<blocks::Choice> color_correction_method{
      "color_correction_method", Widget{.text = "lab", .choices = kMethods}};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, original_resized_images, color_correction_method, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
