// plugins/denoisers/unet_adapters.h - IP-Adapters of a UNet (Ye et al. 2023): tokens of a picture
// that the transformers attend to beside those of the text. Who applies one joins its file to the
// model's under a prefix, and builds the model anew with its place in the configuration:
//
// adapters   list of records: prefix ("adapter.0.", of its tensors), file (its path, for messages),
//            weights (list of floats, of each transformer in the order of evaluation; 0: none
//            there), sources (list of ints, of each transformer: 0 its tokens, 1 the other ones),
//            scaling (text, below), each (int: tokens of one picture)
//
// For the nth the model has inputs, all optional and constant,
//
// adapter.<n>.tokens, adapter.<n>.other  (1|B, T, C)
// adapter.<n>.mask.<i>                   (1|B, S, 1) f32, for places where sides are halved i times
//
// and its blocks lie under "adapter.<n>": without these the model is the one without it. A weight
// changes what is attended to ("V only"), keys and values ("K+V", also with a penalty by the width
// behind it: "K+V w/ C penalty"), or keys and the mean of the values ("K+mean(V) w/ C penalty"): as
// ComfyUI_IPAdapter_plus names these. Blocks are pure; the builder belongs to one call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "unet_names.h"
#include "unet_tome.h"

namespace heddle::denoisers {

// The first part of a transformer's block, where something stands between its attentions. tokens
// (B, S, D) -> tokens behind the attention to each other. attended (B, S, D): as of
// UnetTransformer.
struct UnetSelfPart : MergePorts {
  static constexpr Info info{"unet.self.part", 1,  "UNet attention to each other",
                             "blocks/unet",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> attended{"attended", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(tokens, attended, heads, eps, norm, norm_bias, qkv,
                                              proj, proj_bias, cells, ratio, corner, out);
  static void execute(Context& ctx);
};

// The second: tokens (B, S, D), kv (B, T, 2 D) of the text -> asked (B, S, D), attended (B, S, D).
struct UnetTextPart {
  static constexpr Info info{"unet.text.part", 1,  "UNet attention to the text",
                             "blocks/unet",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> kv{"kv"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> asked{"asked"};
  static constexpr Output<Tensor> attended{"attended"};
  static constexpr auto ports =
      heddle::ports(tokens, kv, heads, eps, norm, norm_bias, q, asked, attended);
  static void execute(Context& ctx);
};

// Keys and values of an adapter, which are the same in all steps: tokens (1|B, T, C) -> kv (B, T, 2
// D). Of the latent x (B, ...) it reads the shape. Keys become `keys` times, values `values` times,
// and their means over each `each` tokens `means` times as large.
struct UnetAdapterKv {
  static constexpr Info info{"unet.adapter.kv", 1,  "UNet keys and values of a picture",
                             "blocks/unet",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> keys{"keys", Widget{.number = 1}};
  static constexpr Input<double> values{"values", Widget{.number = 1}};
  static constexpr Input<double> means{"means", Widget{.number = 1}};
  static constexpr Input<std::int64_t> each{"each", Widget{.number = 4}};
  static constexpr Weight kv{"kv.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"kv"};
  static constexpr auto ports = heddle::ports(tokens, x, keys, values, means, each, kv, out);
  static void execute(Context& ctx);
};

// attended (B, S, D) -> the same plus `strength` times what asked (B, S, D) finds in kv (B, T, 2
// D), times mask (1|B, S, 1).
struct UnetAdapterAttention {
  static constexpr Info info{"unet.adapter", 1,  "UNet attention to a picture",
                             "blocks/unet",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> attended{"attended"};
  static constexpr Input<Tensor> asked{"asked"};
  static constexpr Input<Tensor> kv{"kv"};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Output<Tensor> out{"attended"};
  static constexpr auto ports = heddle::ports(attended, asked, kv, mask, heads, strength, out);
  static void execute(Context& ctx);
};

// A transformer's block, and what it reads.
struct UnetBlockPlace {
  const UnetPart& part;
  std::string path, module;  // "input.4.transformer.0", "transformer_blocks.0."
  std::int64_t heads = 0, width = 0;
  int halvings = 0;
  Source tokens, kv, x;                 // of the block, of the text, the latent
  std::optional<Source> attended = {};  // to each other, where it stands in blocks of its own
  double merged = 0;                    // share of the tokens (unet_tome.h)
};

// Adds the adapters of a configuration to the graph of a UNet.
class UnetAdapters {
 public:
  // All arguments outlive this object, which outlives the build. `file`: all joined.
  UnetAdapters(const Checkpoint& file, const UnetNames& names, const Value& config, Blocks& graph);
  bool empty() const { return adapters_.empty(); }

  // In the order of evaluation: a transformer begins, whose blocks then come one by one.
  void enter() { ++transformer_; }
  // The parts of a block up to its MLP: its tokens behind the attention to each other, and what
  // that to the text made of such tokens, with what all adapters add.
  Source self(const UnetBlockPlace& place);
  Source crossed(const UnetBlockPlace& place, const Source& tokens);

  // For who applies adapters: how many blocks there are, where their transformers stand ("iimooo":
  // on the way down, in the middle, on the way up).
  static void add_settings(const UnetNames& names, std::int64_t context, Blocks& graph);

 private:
  struct Adapter {
    std::string prefix, file, path, scaling;
    std::vector<double> weights;
    std::vector<std::int64_t> sources;
    std::int64_t each = 1;
  };
  Source input(const std::string& name);
  Source added(const Adapter& adapter, const UnetBlockPlace& place, int number,
               const Source& attended, const Source& asked);
  int number_of(const std::string& path);

  const Checkpoint& file_;
  const UnetNames& names_;
  Blocks& graph_;
  std::vector<Adapter> adapters_;
  std::map<std::string, Source> inputs_;
  int transformer_ = -1;
  int down_ = 0, up_ = 0, middle_ = 0;  // numbers of the next blocks there
};

}  // namespace heddle::denoisers
