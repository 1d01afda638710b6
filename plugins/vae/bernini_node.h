// The node that tells Bernini what it looks at: a video that it changes, one that it puts in, and
// pictures. Formulas: ComfyUI's node of this name. Stateless.
#pragma once

#include "plugins/blocks/port_types.h"
#include "plugins/vae/wan_nodes.h"

namespace heddle::vae {

namespace wan_ports {
constexpr Widget bernini_side(double number) {
  return Widget{.number = number, .min = 16, .max = 8192, .step = 16};
}
}  // namespace wan_ports

struct BerniniConditioning {
  static constexpr Widget kFrames{.number = 81, .min = 1, .max = 8192, .step = 4},
      kLongest{.number = 848, .min = 16, .max = 8192, .step = 16, .flags = HEDDLE_PORT_OPTIONAL},
      kPictures{.extra = R"({"template": {"input": {"required": {"reference_image": ["IMAGE", {}]}},
                   "prefix": "reference_image_", "min": 0, "max": 8}})",
                .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{
      "BerniniConditioning",
      1,
      "Bernini Conditioning",
      "model/conditioning/bernini",
      "What Bernini looks at: source_video, which it changes, reference_video, which it puts in, "
      "and reference_images. With none it draws from the text alone.",
      HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Value> positive = wan_ports::conditioning("positive");
  static constexpr Input<Value> negative = wan_ports::conditioning("negative");
  static constexpr Input<Value> vae = wan_ports::vae();
  static constexpr Input<std::int64_t> width{"width", wan_ports::bernini_side(832)};
  static constexpr Input<std::int64_t> height{"height", wan_ports::bernini_side(480)};
  static constexpr Input<std::int64_t> length{"length", kFrames};
  static constexpr Input<std::int64_t> batch_size{"batch_size", wan_ports::kBatch};
  static constexpr Input<Tensor> source_video =
      wan_ports::picture("source_video", "What is changed, in the size and length of the video.");
  static constexpr Input<Tensor> reference_video =
      wan_ports::picture("reference_video", "What is put into it, in its own aspect.");
  static constexpr Input<blocks::Growing> reference_images{
      "reference_images", kPictures, "Each picture is looked at by itself, in its own aspect."};
  static constexpr Input<std::int64_t> longest{
      "ref_max_size", kLongest, "The longer side that references have at most, in pixels."};
  static constexpr Output<Value> positive_out = wan_ports::changed("positive");
  static constexpr Output<Value> negative_out = wan_ports::changed("negative");
  static constexpr Output<Value> latent = wan_ports::latent();
  static constexpr auto ports =
      heddle::ports(positive, negative, vae, width, height, length, batch_size, source_video,
                    reference_video, reference_images, longest, positive_out, negative_out, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
