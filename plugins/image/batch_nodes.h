// Nodes that put pictures and masks together into batches, and take them apart into lists. On the
// host; stateless.
#pragma once

#include "plugins/blocks/port_types.h"

namespace heddle::image {

struct BatchImagesNode {
  static constexpr Widget kImages{
      .extra = R"({"template": {"input": {"required": {"image": ["IMAGE", {}]}},
                   "prefix": "image", "min": 1, "max": 50}})"};

  static constexpr Info info{"BatchImagesNode",
                             1,
                             "Batch Images",
                             "image/batch",
                             "All pictures in one batch, in the size of the first; what does not "
                             "fit its aspect is cut off.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<blocks::Growing> images{"images", kImages};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, out);
  static void execute(Context& ctx);
};

struct BatchMasksNode {
  static constexpr Widget kMasks{.extra =
                                     R"({"template": {"input": {"required": {"mask": ["MASK", {}]}},
                   "prefix": "mask", "min": 1, "max": 50}})"};

  static constexpr Info info{"BatchMasksNode",
                             1,
                             "Batch Masks",
                             "image/mask",
                             "All masks in one batch, in the size of the first.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<blocks::Growing> masks{"masks", kMasks};
  static constexpr Output<Tensor> out{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(masks, out);
  static void execute(Context& ctx);
};

struct RebatchImages {
  static constexpr Info info{"RebatchImages",
                             1,
                             "Rebatch Images",
                             "image/batch",
                             "The pictures of all batches of a list, in batches of another size.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<std::int64_t> batch_size{"batch_size",
                                                  {.number = 1, .min = 1, .max = 4096}};
  static constexpr Output<Value> out{"IMAGE", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, batch_size, out);
  static void execute(Context& ctx);
};

struct SplitImageToTileList {
  static constexpr Widget kSide{.number = 1024, .min = 64, .max = 16384};

  static constexpr Info info{"SplitImageToTileList",
                             1,
                             "Split Image into List of Tiles",
                             "image/batch",
                             "Parts of a picture that overlap, row by row; the last ones end where "
                             "the picture does.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> tile_width{"tile_width", kSide};
  static constexpr Input<std::int64_t> tile_height{"tile_height", kSide};
  static constexpr Input<std::int64_t> overlap{"overlap", {.number = 128, .max = 4096}};
  static constexpr Output<Value> out{"IMAGE", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, tile_width, tile_height, overlap, out);
  static void execute(Context& ctx);
};

struct ImageMergeTileList {
  static constexpr Widget kSide{.number = 1024, .min = 64, .max = 32768};

  static constexpr Info info{"ImageMergeTileList",
                             1,
                             "Merge List of Tiles to Image",
                             "image/batch",
                             "A picture of the parts that Split Image into List of Tiles makes; "
                             "where they overlap, they fade into each other.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> image_list{"image_list", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<std::int64_t> final_width{"final_width", kSide};
  static constexpr Input<std::int64_t> final_height{"final_height", kSide};
  static constexpr Input<std::int64_t> overlap{"overlap", {.number = 128, .max = 4096}};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image_list, final_width, final_height, overlap, out);
  static void execute(Context& ctx);
};

struct MergeImageLists {
  static constexpr Info info{"MergeImageLists",
                             1,
                             "Merge Image Lists (DEPRECATED)",
                             "image/batch",
                             "A list of single pictures.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DEPRECATED | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Output<Value> out{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
