// plugins/detection/scail_mask_node.h - the node that paints things that were followed in a video,
// each in a colour of its own, as SCAIL 2 reads them. Formulas: ComfyUI's node of this name.
// Stateless; any thread.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::detection {

struct Scail2ColoredMask {
  static constexpr Widget kReference{.extra = R"({"display_name": "reference_masks"})",
                                     .flags = HEDDLE_PORT_OPTIONAL,
                                     .type = "SAM3_TRACK_DATA,MASK"},
      kThings{.extra = R"({"default": "", "multiline": false})"};
  static constexpr const char* kOrders[] = {"none", "left_to_right", "area", nullptr};

  static constexpr Info info{"SCAIL2ColoredMask",
                             1,
                             "Create SCAIL-2 Colored Mask",
                             "model/conditioning/wan/scail",
                             "Paints objects that were followed in a video, and the same ones in "
                             "pictures, for WanSCAILToVideo.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> tracks{"driving_track_data", 0, "", "SAM3_TRACK_DATA"};
  static constexpr Input<std::string> things{"object_indices", kThings,
                                             "Numbers apart by commas; none: all objects."};
  static constexpr Input<blocks::Choice> order{
      "sort_by", Widget{.text = "left_to_right", .choices = kOrders},
      "Which object gets the first colour, of those that are seen first."};
  static constexpr Input<bool> replaces{
      "replacement_mode", Widget{.number = 0},
      "The video's objects are on white and those of the pictures on black, else the other way "
      "round."};
  static constexpr Input<Value> reference{
      "ref_track_data", kReference,
      "Objects of the pictures, or a mask of one; none: there is nothing in them."};
  static constexpr Output<Tensor> painted{"pose_video_mask", 0, "(B, H, W, 3)", "IMAGE"};
  static constexpr Output<Tensor> painted_reference{"reference_image_mask", 0, "(B, H, W, 3)",
                                                    "IMAGE"};
  static constexpr auto ports =
      heddle::ports(tracks, things, order, replaces, reference, painted, painted_reference);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::detection
