// plugins/core/pose_nodes.h - SDPoseKeypointExtractor: people's keypoints by SDPose, a UNet of
// Lotus whose states a head reads (plugins/denoisers/unet_heatmaps.h). POSE_KEYPOINT:
// plugins/image/pose_nodes.h. Stateless; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::loaders {

// As ComfyUI: a picture, or each of its boxes, is stretched to 768 x 1024 pixels and encoded, the
// model sees the latent at its highest level, and keypoints are where heatmaps are largest. Boxes
// that lie outside a picture are left out; a picture without a list of boxes sees the last one, one
// with an empty list is seen as a whole. batch_size pictures are seen at once, but boxes one by
// one.
struct SdPoseKeypointExtractor {
  static constexpr Widget kBatch{.number = 16, .min = 1, .max = 10000, .step = 1};
  static constexpr Widget kBoxes{
      .extra = R"({"default": {"x": 0, "y": 0, "width": 512, "height": 512},
                   "socketless": true, "forceInput": true})",
      .flags = HEDDLE_PORT_OPTIONAL,
      .type = "BOUNDING_BOX"};

  static constexpr Info info{"SDPoseKeypointExtractor", 1, "SDPose Keypoint Extractor",
                             "image/detection",
                             "Finds where people's joints, hands and faces are in pictures. Reads "
                             "models/embeddings/lotus_conditioning.safetensors, as "
                             "LotusConditioning does."};
  static constexpr Input<Value> model{"model", 0, "Of SDPose's checkpoint.", "MODEL"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "Of the same.", "VAE"};
  static constexpr Input<Tensor> image{"image", 0, "(B, H, W, C) f32, 0 to 1", "IMAGE"};
  static constexpr Input<std::int64_t> batch_size{"batch_size", kBatch};
  static constexpr Input<Value> bboxes{"bboxes", kBoxes};
  static constexpr Output<Value> keypoints{"keypoints", 0, "A record for each picture.",
                                           "POSE_KEYPOINT"};
  static constexpr auto ports = heddle::ports(model, vae, image, batch_size, bboxes, keypoints);
  static void execute(Context& ctx);
  static void infer(Infer& question);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
