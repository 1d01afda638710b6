// ChromaRadianceOptions: how Chroma Radiance is called. On the host; stateless.
#pragma once

#include "patch_nodes.h"

namespace heddle::samplers {

// Squares of pixels go through the last networks in stretches of a size of heddle's own, so that
// nerf_tile_size changes nothing: their results do not depend on each other. Models other than
// Chroma Radiance stay as they are.
struct ChromaRadianceOptions {
  static constexpr Widget kSigma{.number = 1, .max = 1, .extra = patch_ports::kAdvanced};
  static constexpr Info info{"ChromaRadianceOptions",
                             1,
                             "ChromaRadianceOptions",
                             "model/patch/chroma radiance",
                             "For files of Chroma Radiance that were trained with text tokens one "
                             "after another and do not say so.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<bool> preserve{"preserve_wrapper", Widget{.number = 1}};
  static constexpr Input<double> start{"start_sigma", kSigma};
  static constexpr Input<double> end{"end_sigma",
                                     Widget{.max = 1, .extra = patch_ports::kAdvanced}};
  static constexpr Input<std::int64_t> tile{
      "nerf_tile_size", Widget{.number = -1, .extra = R"({"advanced": true, "min": -1})"}};
  static constexpr Input<bool> sequential{"force_sequential_txt_ids",
                                          Widget{.extra = patch_ports::kAdvanced}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, preserve, start, end, tile, sequential, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
