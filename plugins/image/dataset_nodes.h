// Nodes of data sets: pictures cut, scaled, changed in their colours, shuffled and put into a grid.
// On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr std::uint32_t kTried = HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr Widget kDataSide{.number = 512, .min = 1, .max = 8192};
// A seed without a control in front ends.
inline constexpr Widget kDataSeed{.kind = HEDDLE_WIDGET_SEED,
                                  .extra = R"({"control_after_generate": null})"};

struct ResizeImagesByShorterEdge {
  static constexpr Info info{"ResizeImagesByShorterEdge",
                             1,
                             "Resize Images by Shorter Edge (DEPRECATED)",
                             "image/transform",
                             "The shorter side in this length, by Lanczos.",
                             kTried | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> shorter_edge{"shorter_edge", kDataSide};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, shorter_edge, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ResizeImagesByLongerEdge {
  static constexpr Info info{"ResizeImagesByLongerEdge",
                             1,
                             "Resize Images by Longer Edge (DEPRECATED)",
                             "image/transform",
                             "The longer side in this length, by Lanczos.",
                             kTried | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> longer_edge{"longer_edge",
                                                   {.number = 1024, .min = 1, .max = 8192}};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, longer_edge, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct CenterCropImages {
  static constexpr Info info{"CenterCropImages",
                             1,
                             "Crop Image (Center)",
                             "image/transform",
                             "The middle of a picture; all of it where it is smaller.",
                             kTried};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> width{"width", kDataSide};
  static constexpr Input<std::int64_t> height{"height", kDataSide};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, width, height, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct RandomCropImages {
  static constexpr Info info{"RandomCropImages",
                             1,
                             "Crop Image (Random)",
                             "image/transform",
                             "A part of a picture, where the seed says; of all pictures of a batch "
                             "the same.",
                             kTried};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> width{"width", kDataSide};
  static constexpr Input<std::int64_t> height{"height", kDataSide};
  static constexpr Input<std::uint64_t> seed{"seed", kDataSeed};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, width, height, seed, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct NormalizeImages {
  static constexpr Widget kMean{
      .number = 0.5, .min = 0, .max = 1, .extra = R"({"advanced": true})"};
  static constexpr Widget kDeviation{
      .number = 0.5, .min = 0.001, .max = 1, .extra = R"({"advanced": true})"};

  static constexpr Info info{"NormalizeImages",   1,     "Normalize Image Colors", "image/color",
                             "(x - mean) / std.", kTried};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<double> mean{"mean", kMean};
  static constexpr Input<double> deviation{"std", kDeviation};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, mean, deviation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct AdjustBrightness {
  static constexpr Info info{"AdjustBrightness", 1,     "Adjust Brightness", "image/adjustments",
                             "x times factor.",  kTried};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<double> factor{"factor", {.number = 1, .max = 2}};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, factor, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct AdjustContrast {
  static constexpr Info info{"AdjustContrast",
                             1,
                             "Adjust Contrast",
                             "image/adjustments",
                             "The distance to grey times factor.",
                             kTried};
  static constexpr Input<Tensor> images{"images", 0, "", "IMAGE"};
  static constexpr Input<double> factor{"factor", {.number = 1, .max = 2}};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, factor, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ShuffleDataset {
  static constexpr Info info{"ShuffleDataset",
                             1,
                             "Shuffle Images List",
                             "image/batch",
                             "The pictures of a list in another order.",
                             kTried};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<std::uint64_t> seed{"seed", kDataSeed};
  static constexpr Output<Value> out{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, seed, out);
  static void execute(Context& ctx);
};

struct ShuffleImageTextDataset {
  static constexpr Info info{"ShuffleImageTextDataset",
                             1,
                             "Shuffle Pairs of Image-Text",
                             "image/batch",
                             "Pictures and their texts in another order, the same for both.",
                             kTried};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<Value> texts{"texts",
                                      Widget{.extra = R"({"forceInput": true, "multiline": false})",
                                             .flags = HEDDLE_PORT_LIST,
                                             .type = "STRING"}};
  static constexpr Input<std::uint64_t> seed{"seed", kDataSeed};
  static constexpr Output<Value> out{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Output<Value> texts_out{"texts", HEDDLE_PORT_LIST, "", "STRING"};
  static constexpr auto ports = heddle::ports(images, texts, seed, out, texts_out);
  static void execute(Context& ctx);
};

struct ImageDeduplication {
  static constexpr Widget kLeast{.number = 0.95, .max = 1, .extra = R"({"advanced": true})"};

  static constexpr Info info{"ImageDeduplication",
                             1,
                             "Deduplicate Images",
                             "image/batch",
                             "The pictures of a list without those that look like an earlier one.",
                             kTried};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<double> similarity_threshold{"similarity_threshold", kLeast};
  static constexpr Output<Value> out{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images, similarity_threshold, out);
  static void execute(Context& ctx);
};

struct ImageGrid {
  static constexpr Widget kCell{
      .number = 256, .min = 32, .max = 2048, .extra = R"({"advanced": true})"};
  static constexpr Widget kPadding{.number = 4, .max = 50, .extra = R"({"advanced": true})"};

  static constexpr Info info{"ImageGrid",
                             1,
                             "Make Image Grid",
                             "image/batch",
                             "One picture of all those of a list, row by row, on black.",
                             kTried};
  static constexpr Input<Value> images{"images", HEDDLE_PORT_LIST, "", "IMAGE"};
  static constexpr Input<std::int64_t> columns{"columns", {.number = 4, .min = 1, .max = 20}};
  static constexpr Input<std::int64_t> cell_width{"cell_width", kCell};
  static constexpr Input<std::int64_t> cell_height{"cell_height", kCell};
  static constexpr Input<std::int64_t> padding{"padding", kPadding};
  static constexpr Output<Tensor> out{"images", 0, "", "IMAGE"};
  static constexpr auto ports =
      heddle::ports(images, columns, cell_width, cell_height, padding, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
