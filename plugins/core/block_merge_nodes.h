// ModelMergeFlux1 and its like: a ratio for each block of a model, by the names of its original
// files. All of them are rows of one table. On the host; stateless.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "merge_nodes.h"
#include "model_merge.h"

namespace heddle::loaders {

// What the names of a group's weights begin with: `before` where count is 0, else `before`, 0 to
// count - 1, and `after`.
struct BlockNames {
  const char* before = nullptr;  // nullptr: no group
  int count = 0;
  const char* after = ".";
};

// A node: its class, and its inputs in their order.
struct BlockMerge {
  const char* type;
  std::array<BlockNames, 9> names;
  const char* category = kMergingBlocksCategory;

  constexpr std::size_t size() const {
    std::size_t total = 0;
    for (const BlockNames& group : names)
      if (group.before != nullptr) total += group.count == 0 ? 1 : std::size_t(group.count);
    return total;
  }
};

inline constexpr std::array<BlockNames, 9> kUNetBlocks{{{"time_embed."},
                                                        {"label_emb."},
                                                        {"input_blocks.", 12},
                                                        {"middle_block.", 3},
                                                        {"output_blocks.", 12},
                                                        {"out."}}};
constexpr std::array<BlockNames, 9> sd3_blocks(int count) {
  return {{{"pos_embed."},
           {"x_embedder."},
           {"context_embedder."},
           {"y_embedder."},
           {"t_embedder."},
           {"joint_blocks.", count},
           {"final_layer."}}};
}
constexpr std::array<BlockNames, 9> cosmos_blocks(int count) {
  return {{{"pos_embedder."},
           {"extra_pos_embedder."},
           {"x_embedder."},
           {"t_embedder."},
           {"affline_norm."},
           {"blocks.block", count},
           {"final_layer."}}};
}
constexpr std::array<BlockNames, 9> cosmos_predict2_blocks(int count) {
  return {{{"pos_embedder."},
           {"x_embedder."},
           {"t_embedder."},
           {"t_embedding_norm."},
           {"blocks.", count},
           {"final_layer."}}};
}

inline constexpr BlockMerge kBlockMerges[] = {
    {"ModelMergeSD1", kUNetBlocks},
    {"ModelMergeSD2", kUNetBlocks},
    {"ModelMergeSDXL",
     {{{"time_embed."},
       {"label_emb."},
       {"input_blocks.", 9, ""},
       {"middle_block.", 3, ""},
       {"output_blocks.", 9, ""},
       {"out."}}}},
    {"ModelMergeSD3_2B", sd3_blocks(24)},
    {"ModelMergeSD35_Large", sd3_blocks(38)},
    {"ModelMergeAuraflow",
     {{{"init_x_linear."},
       {"positional_encoding"},
       {"cond_seq_linear."},
       {"register_tokens"},
       {"t_embedder."},
       {"double_layers.", 4},
       {"single_layers.", 32},
       {"modF."},
       {"final_linear."}}}},
    {"ModelMergeFlux1",
     {{{"img_in."},
       {"time_in."},
       {"guidance_in"},
       {"vector_in."},
       {"txt_in."},
       {"double_blocks.", 19},
       {"single_blocks.", 38},
       {"final_layer."}}}},
    {"ModelMergeMochiPreview",
     {{{"pos_frequencies."},
       {"t_embedder."},
       {"t5_y_embedder."},
       {"t5_yproj."},
       {"blocks.", 48},
       {"final_layer."}}}},
    {"ModelMergeLTXV",
     {{{"patchify_proj."},
       {"adaln_single."},
       {"caption_projection."},
       {"transformer_blocks.", 28},
       {"scale_shift_table"},
       {"proj_out."}}}},
    {"ModelMergeCosmos7B", cosmos_blocks(28)},
    {"ModelMergeCosmos14B", cosmos_blocks(36)},
    {"ModelMergeWAN2_1",
     {{{"patch_embedding."},
       {"time_embedding."},
       {"time_projection."},
       {"text_embedding."},
       {"img_emb."},
       {"blocks.", 40},
       {"head."}}}},
    {"ModelMergeCosmosPredict2_2B", cosmos_predict2_blocks(28)},
    {"ModelMergeCosmosPredict2_14B", cosmos_predict2_blocks(36)},
    {"ModelMergeQwenImage",
     {{{"pos_embeds."},
       {"img_in."},
       {"txt_norm."},
       {"txt_in."},
       {"time_text_embed."},
       {"transformer_blocks.", 60},
       {"proj_out."}}}},
    {"ModelMergeKrea2",
     {{{"first."},
       {"tmlp."},
       {"txtmlp."},
       {"tproj."},
       {"txtfusion.layerwise_blocks.", 2},
       {"txtfusion.projector."},
       {"txtfusion.refiner_blocks.", 2},
       {"blocks.", 28},
       {"last."}}},
     "model/merging/model specific"}};

// Built while compiling: ports keep their names for good.
constexpr std::array<char, 40> block_name(const BlockMerge& node, std::size_t index) {
  std::array<char, 40> text{};
  std::size_t length = 0;
  const auto add = [&](const char* part) {
    while (*part != '\0') text[length++] = *part++;
  };
  for (const BlockNames& group : node.names) {
    const std::size_t count = group.count == 0 ? 1 : std::size_t(group.count);
    if (index >= count) {
      index -= count;
      continue;
    }
    add(group.before);
    if (group.count == 0) break;
    if (index >= 10) text[length++] = char('0' + index / 10);
    text[length++] = char('0' + index % 10);
    add(group.after);
    break;
  }
  return text;
}
template <std::size_t kRow, std::size_t kIndex>
inline constexpr auto kBlockName = block_name(kBlockMerges[kRow], kIndex);
template <std::size_t kRow, std::size_t kIndex>
inline constexpr Input<double> kBlockRatio{kBlockName<kRow, kIndex>.data(), kRatio};

// The ports of a row's node.
template <std::size_t kRow>
struct BlockMergePorts {
  static constexpr Input<Value> model1{"model1", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> model2{"model2", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
};
template <std::size_t kRow, std::size_t... kIndices>
constexpr auto block_merge_ports(std::index_sequence<kIndices...>) {
  using Ports = BlockMergePorts<kRow>;
  return heddle::ports(Ports::model1, Ports::model2, kBlockRatio<kRow, kIndices>..., Ports::out);
}
template <std::size_t kRow, std::size_t... kIndices>
std::vector<BlockRatio> block_ratios(Context& ctx, std::index_sequence<kIndices...>) {
  return {{kBlockName<kRow, kIndices>.data(), ctx[kBlockRatio<kRow, kIndices>]}...};
}

// The node of a row.
template <std::size_t kRow>
struct MergeByBlocks {
  using Ports = BlockMergePorts<kRow>;
  using Indices = std::make_index_sequence<kBlockMerges[kRow].size()>;
  static constexpr Info info{kBlockMerges[kRow].type,
                             1,
                             kBlockMerges[kRow].type,
                             kBlockMerges[kRow].category,
                             "As ModelMergeSimple, with a ratio for each block of the model.",
                             kLoader};
  static constexpr auto ports = block_merge_ports<kRow>(Indices{});
  static void execute(Context& ctx) {
    ctx[Ports::out] = merged_by_blocks(ctx[Ports::model1], ctx[Ports::model2],
                                       block_ratios<kRow>(ctx, Indices{}));
  }
};

}  // namespace heddle::loaders
