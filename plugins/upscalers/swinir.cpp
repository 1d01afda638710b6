#include "swinir.h"

#include "frame.h"
#include "plugins/blocks/slots.h"
#include "swin_blocks.h"
#include "windows.h"

namespace heddle::upscalers {
namespace {

std::string swin_layer(int i) { return "layers." + std::to_string(i); }
std::string swin_block(int i, int j) {
  return swin_layer(i) + ".residual_group.blocks." + std::to_string(j);
}

class SwinBuilder {
 public:
  SwinBuilder(const Checkpoint& file, Blocks& graph)
      : file_(file), graph_(graph), frame_(file, graph), side_(window_side()) {}

  void build(const char* family, const FrameStyle& style) {
    const FrameStart start = frame_.begin(style);
    add_places();
    Source hidden = start.tokens;
    const int layers = blocks::layer_count(file_, "layers.");
    for (int i = 0; i < layers; ++i) {
      const Source base = hidden;
      const int depth = blocks::layer_count(file_, swin_layer(i) + ".residual_group.blocks.");
      for (int j = 0; j < depth; ++j) hidden = add_layer(i, j, hidden);
      if (reach_ > 0) hidden = add_overlap(i, hidden);
      hidden = frame_.join(swin_layer(i) + ".join", swin_layer(i) + ".conv", "", hidden, base,
                           reach_ > 0);
    }
    hidden = frame_.join("join", "conv_after_body", "norm", hidden, start.hidden, reach_ > 0);
    frame_.end(family, style, start, hidden);
  }
  std::int64_t side() const { return side_; }

 private:
  // Of a bias table that has a row for every distance of `reach` places along each side: reach.
  std::int64_t distances(const std::string& table) const {
    const std::int64_t rows = file_.size(table, 0), root = square_root(rows);
    if (root == 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + table + "' has " +
                                          std::to_string(rows) +
                                          " rows, which are those of no square window");
    return root;
  }
  std::int64_t window_side() const {
    return (distances(swin_block(0, 0) + ".attn.relative_position_bias_table") + 1) / 2;
  }

  // What all layers read.
  void add_places() {
    const std::string overlap =
        swin_layer(0) + ".residual_group.overlap_attn.relative_position_bias_table";
    ids_ = places("places", side_, side_, 2 * side_ - 1, side_ - 1, false);
    using M = ShiftMasks;
    Block masks = graph_.add<M>("masks");
    masks.set(M::height, side_).set(M::width, side_).set(M::down, side_ / 2);
    masks.set(M::right, side_ / 2);
    masks_ = masks[M::masks];
    if (!file_.has(overlap)) return;
    const std::int64_t columns = distances(overlap);
    reach_ = columns + 1 - side_;
    if (reach_ < side_ || (reach_ - side_) % 2 != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": windows of " + std::to_string(side_) +
                                          " that see " + std::to_string(reach_) +
                                          " rows, which do not stand around them");
    overlap_ids_ = places("overlap_places", side_, reach_, columns, side_ - reach_ + 1, true);
  }
  Source places(const char* path, std::int64_t queries, std::int64_t keys, std::int64_t columns,
                std::int64_t first, bool keys_first) {
    using P = RelativePlaces;
    Block block = graph_.add<P>(path);
    block.set(P::query_height, queries).set(P::query_width, queries);
    block.set(P::key_height, keys).set(P::key_width, keys).set(P::columns, columns);
    block.set(P::start, first * columns + first).set(P::keys_first, keys_first);
    return block[P::ids];
  }

  Source add_layer(int i, int j, const Source& hidden) {
    using L = SwinLayer;
    const std::string module = swin_block(i, j), path = swin_layer(i) + "." + std::to_string(j);
    Block block = graph_.add<L>(path);
    block.link(L::hidden, hidden).link(L::ids, ids_).set(L::window, side_);
    if (j % 2 == 1 && side_ > 1) block.link(L::masks, masks_);
    fill_attention<L>(block, path, module, module + ".attn", 2 * side_ - 1);
    const std::string conv = module + ".conv_block.cab.";
    if (!file_.has(conv + "0.weight")) return block[L::out];
    const std::int64_t width = file_.size(module + ".norm1.weight", 0),
                       narrow = file_.size(conv + "0.weight", 0),
                       few = file_.size(conv + "3.attention.1.weight", 0);
    blocks::Slots slots(file_, block, path);
    const auto filter = [&](const Weight& weight, const Weight& bias, const std::string& name,
                            std::int64_t out, std::int64_t in, std::int64_t side) {
      slots.fill(weight, conv + name + ".weight", {out, in, side, side});
      slots.fill(bias, conv + name + ".bias", {out});
    };
    filter(L::conv1, L::conv1_bias, "0", narrow, width, 3);
    filter(L::conv2, L::conv2_bias, "2", width, narrow, 3);
    filter(L::squeeze, L::squeeze_bias, "3.attention.1", few, width, 1);
    filter(L::excite, L::excite_bias, "3.attention.3", width, few, 1);
    return block[L::out];
  }

  Source add_overlap(int i, const Source& hidden) {
    using O = OverlapLayer;
    const std::string module = swin_layer(i) + ".residual_group.overlap_attn",
                      path = swin_layer(i) + ".overlap";
    Block block = graph_.add<O>(path);
    block.link(O::hidden, hidden).link(O::ids, overlap_ids_).set(O::window, side_);
    block.set(O::reach, reach_);
    fill_attention<O>(block, path, module, module, side_ + reach_ - 1);
    return block[O::out];
  }

  // The slots that both kinds of layer have.
  template <class L>
  void fill_attention(Block& block, const std::string& path, const std::string& module,
                      const std::string& attention, std::int64_t distance) {
    const std::int64_t width = file_.size("norm.weight", 0),
                       wide = file_.size(module + ".mlp.fc1.weight", 0),
                       heads = file_.size(attention + ".relative_position_bias_table", 1);
    if (heads == 0 || width % heads != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + attention + "' has " +
                                          std::to_string(heads) + " heads for " +
                                          std::to_string(width) + " channels");
    block.set(L::heads, heads);
    blocks::Slots slots(file_, block, path);
    const auto matrix = [&](const Weight& weight, const Weight& bias, const std::string& name,
                            std::int64_t out, std::int64_t in) {
      slots.fill(weight, name + ".weight", {out, in});
      slots.fill(bias, name + ".bias", {out});
    };
    const auto norm = [&](const Weight& weight, const Weight& bias, const std::string& name) {
      slots.fill(weight, module + name + ".weight", {width});
      slots.fill(bias, module + name + ".bias", {width});
    };
    norm(L::norm1, L::norm1_bias, ".norm1");
    slots.fill(L::table, attention + ".relative_position_bias_table", {distance * distance, heads});
    slots.fill(L::qkv, attention + ".qkv.weight", {3 * width, width});
    if (file_.has(attention + ".qkv.bias"))
      slots.fill(L::qkv_bias, attention + ".qkv.bias", {3 * width});
    matrix(L::proj, L::proj_bias, attention + ".proj", width, width);
    norm(L::norm2, L::norm2_bias, ".norm2");
    matrix(L::fc1, L::fc1_bias, module + ".mlp.fc1", wide, width);
    matrix(L::fc2, L::fc2_bias, module + ".mlp.fc2", width, wide);
  }

  const Checkpoint& file_;
  Blocks& graph_;
  Frame frame_;
  std::int64_t side_, reach_ = 0;
  Source ids_, masks_, overlap_ids_;
};

// A file that has positions of its own was trained at one size.
void refuse_places(const Checkpoint& file) {
  if (file.has("absolute_pos_embed"))
    throw Error(HEDDLE_UNSUPPORTED, file.path() +
                                        ": it has absolute positions "
                                        "('absolute_pos_embed'), so that it takes "
                                        "pictures of one size only. Take a file without.");
}

}  // namespace

int SwinIr::match(const Checkpoint& file, const Value&) {
  const std::string block = swin_block(0, 0);
  return file.has(block + ".norm1.weight") && file.has(block + ".mlp.fc1.bias") &&
                 file.has(block + ".attn.relative_position_bias_table") &&
                 !file.has(block + ".conv_block.cab.0.weight") &&
                 (file.has("conv_first.weight") || file.has("conv_first.1.weight"))
             ? 100
             : 0;
}

void SwinIr::build(const Checkpoint& file, const Value&, Blocks& graph) {
  refuse_places(file);
  SwinBuilder builder(file, graph);
  // Pixels in channels stand behind an activation's place in the numbering, as no others do.
  const bool unshuffles = file.has("conv_first.1.weight");
  const std::int64_t unshuffle =
      unshuffles ? square_root(file.size("conv_first.1.weight", 1) / 3) : 1;
  if (unshuffle == 0)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": 'conv_first.1' sees " +
                                        std::to_string(file.size("conv_first.1.weight", 1)) +
                                        " channels, which are no squares of pixels");
  // The models that repair JPEG files are the only ones of windows of 7, and count colours to 255.
  builder.build("swinir", {.window = builder.side(),
                           .unshuffle = unshuffle,
                           .range = builder.side() == 7 ? 255.0 : 1.0,
                           .norm = "patch_embed.norm"});
}

int Hat::match(const Checkpoint& file, const Value&) {
  return file.has(swin_block(0, 0) + ".conv_block.cab.3.attention.1.weight") &&
                 file.has(swin_layer(0) +
                          ".residual_group.overlap_attn.relative_position_bias_table") &&
                 file.has("conv_first.weight") && file.has("conv_last.weight")
             ? 100
             : 0;
}

void Hat::build(const Checkpoint& file, const Value&, Blocks& graph) {
  refuse_places(file);
  SwinBuilder builder(file, graph);
  builder.build("hat", {.window = builder.side(),
                        .norm = file.has("patch_embed.norm.weight") ? "patch_embed.norm" : ""});
}

}  // namespace heddle::upscalers
