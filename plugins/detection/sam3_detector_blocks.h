// plugins/detection/sam3_detector_blocks.h - the block types of SAM 3's detector beyond attentions
// (attention_blocks.h): Carion et al. 2025, SAM 3. A picture's cells (1, H W, C) see a prompt of
// tokens (1, N, C), then queries see both and each ends as a box, a score and a mask. Blocks are
// pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// grid (1, H, W, C) -> cells (1, H W, C), places (1, H W, C): of each row and column as far as it
// is from the first, the last being 1, sines and cosines: the first half of rows.
struct Sam3Cells {
  static constexpr Info info{"sam3.cells", 1, "SAM 3 cells", "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Output<Tensor> cells{"cells"};
  static constexpr Output<Tensor> places{"places"};
  static constexpr auto ports = heddle::ports(grid, cells, places);
  static void execute(Context& ctx);
};

// -> token (1, 1, C): what stands for prompts that are no text, projected and normalised.
struct Sam3PromptToken {
  static constexpr Info info{"sam3.prompt_token", 1,  "SAM 3 token of a prompt",
                             "blocks/sam3",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight token{"token"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"token"};
  static constexpr auto ports = heddle::ports(eps, token, proj, proj_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// text (1, N, T), token (1, 1, C) -> prompt (1, N + 1, C): the text's states made narrower, and the
// token, normalised.
struct Sam3Prompt {
  static constexpr Info info{"sam3.prompt", 1,  "SAM 3 prompt",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> text{"text"};
  static constexpr Input<Tensor> token{"token"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"prompt"};
  static constexpr auto ports =
      heddle::ports(text, token, eps, proj, proj_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// -> queries (1, 1 + Q, C), of which the first tells whether there is anything, anchors (1, Q, 4):
// boxes (middle x, y, width, height) before the sigmoid that makes them parts of the picture.
struct Sam3Queries {
  static constexpr Info info{"sam3.queries", 1,  "SAM 3 queries",
                             "blocks/sam3",  "", HEDDLE_NODE_BLOCK};
  static constexpr Weight presence{"presence"};
  static constexpr Weight table{"queries"};
  static constexpr Weight points{"anchors"};
  static constexpr Output<Tensor> queries{"queries"};
  static constexpr Output<Tensor> anchors{"anchors"};
  static constexpr auto ports = heddle::ports(presence, table, points, queries, anchors);
  static void execute(Context& ctx);
};

// anchors (1, Q, 4), grid (1, H, W, C) -> places (1, 1 + Q, C), of the queries, bias (1, heads, 1 +
// Q, H W): what a query's attention to a cell gets added, by the distances of its row and column
// from the box's sides. Of the first query both are 0.
struct Sam3Anchors {
  static constexpr Info info{"sam3.anchors", 1,  "SAM 3 anchors",
                             "blocks/sam3",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> anchors{"anchors"};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight x_first{"x.first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight x_first_bias{"x.first.bias"};
  static constexpr Weight x_second{"x.second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight x_second_bias{"x.second.bias"};
  static constexpr Weight y_first{"y.first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight y_first_bias{"y.first.bias"};
  static constexpr Weight y_second{"y.second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight y_second_bias{"y.second.bias"};
  static constexpr Output<Tensor> places{"places"};
  static constexpr Output<Tensor> bias{"bias"};
  static constexpr auto ports = heddle::ports(
      anchors, grid, first, first_bias, second, second_bias, x_first, x_first_bias, x_second,
      x_second_bias, y_first, y_first_bias, y_second, y_second_bias, places, bias);
  static void execute(Context& ctx);
};

// anchors (1, Q, 4) -> boxes (1, Q, 4): left, top, right, bottom as parts of the picture.
struct Sam3Boxes {
  static constexpr Info info{"sam3.boxes", 1, "SAM 3 boxes", "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> anchors{"anchors"};
  static constexpr Output<Tensor> out{"boxes"};
  static constexpr auto ports = heddle::ports(anchors, out);
  static void execute(Context& ctx);
};

// queries (1, 1 + Q, C), prompt (1, N, C) -> scores (1, Q): how much each but the first is of what
// the prompt names, before a sigmoid, from -12 to 12.
struct Sam3Scores {
  static constexpr Info info{"sam3.scores", 1,  "SAM 3 scores",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> queries{"queries"};
  static constexpr Input<Tensor> prompt{"prompt"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Weight out_norm{"out_norm.weight"};
  static constexpr Weight out_norm_bias{"out_norm.bias"};
  static constexpr Weight query{"query.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight query_bias{"query.bias"};
  static constexpr Weight text{"text.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_bias{"text.bias"};
  static constexpr Output<Tensor> out{"scores"};
  static constexpr auto ports =
      heddle::ports(queries, prompt, eps, norm, norm_bias, up, up_bias, down, down_bias, out_norm,
                    out_norm_bias, query, query_bias, text, text_bias, out);
  static void execute(Context& ctx);
};

// cells (1, H W, C), or a grid, below (1, 2 H, 2 W, C) -> grid (1, 2 H, 2 W, C): enlarged, plus
// what is below, a convolution, a norm of groups, a ReLU. last: a convolution of 1x1 behind it.
struct Sam3Pixels {
  static constexpr Info info{"sam3.pixels", 1,  "SAM 3 pixels",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> above{"above"};
  static constexpr Input<Tensor> below{"below"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight last{"last.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight last_bias{"last.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"grid"};
  static constexpr auto ports =
      heddle::ports(above, below, eps, conv, conv_bias, norm, norm_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
