// plugins/denoisers/minimax_patch.h - the Fun ControlNet of MiniMax H3, a model patch
// (model_patches.h): a stream of all tokens that runs beside the model's, through layers like its
// own, and adds what it makes to all tokens but those of sound behind some of them. Source of the
// architecture: MiniMaxH3FunControl and MiniMaxH3FunControlPatch of ComfyUI, whose file it is.
//
// Hints (1|B, C, F, H, W): the latent of a video that is followed; behind it a mask that is 1 where
// a video stays, and the latent of that video. What is not given is 0.
//
// Names: those of ComfyUI's files ("control_blocks.0.attn.qkv_proj.weight"), or with parts of
// layers as in diffusers. Of the file's metadata count "control_blocks_places", a JSON list of the
// numbers of layers behind which each of its own adds, from 0 on, else they are spread evenly over
// 50; "minimax_h3_fun_controlnet": "adaln_basis", of files with less weights, for models that have
// a table of times; and "inpaint_masked_pixel_mode": "post_norm", whose holes in the video that
// stays are the mean of pictures, not black. Its layers are dense.
//
// Blocks of "patch.<n>": begin, layer.<k>.{video,text,sound}.modulation, layer.<k>.{block, add}.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include <vector>

#include "minimax_layers.h"
#include "model_patches.h"

namespace heddle::denoisers {

// hidden (B, P, D), what the model's first layer reads, and hint (1|B, C, F, H, W) -> control (B,
// P, D): hidden plus a linear layer of hidden in which tokens of the video are what another layer
// makes of the hint's, and tokens of references what it makes of zeros. Letters as in
// minimax_blocks.h; context and references for their shapes.
struct MinimaxControlBegin {
  static constexpr Info info{"minimax.control_begin", 1,  "MiniMax H3 ControlNet input",
                             "blocks/minimax",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight before{"before.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight before_bias{"before.bias"};
  static constexpr Output<Tensor> out{"control", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, hint, context, references, in, in_bias, before, before_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, P, D) -> the same, with `strength` times what a linear layer makes of control (B, P,
// D) added to all tokens but those of sound.
struct MinimaxControlAdd {
  static constexpr Info info{"minimax.control_add", 1,  "MiniMax H3 ControlNet residual",
                             "blocks/minimax",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> control{"control", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> audio{"audio", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> references{"references", HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> sound_references{"sound_references",
                                                  HEDDLE_PORT_SHAPE | HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(hidden, control, context, audio, references,
                                              sound_references, strength, weight, bias, out);
  static void execute(Context& ctx);
};

// One patch in the graph of its model. Holds references to itself: stays where it is. One call's
// thread.
class MinimaxPatch {
 public:
  // All arguments outlive this object. `file`: both joined. has_table: whether the model has a
  // table of times. Throws what is wrong with the patch.
  MinimaxPatch(const Checkpoint& file, const ModelPatch& patch, const MinimaxSizes& sizes,
               bool has_table, double eps, Blocks& graph);
  MinimaxPatch(const MinimaxPatch&) = delete;
  MinimaxPatch& operator=(const MinimaxPatch&) = delete;

  // hidden: what the model's first layer reads; told: what its layers read besides.
  void begin(const Source& hidden, const MinimaxTold& told);
  // Behind layer `index`.
  Source after_layer(int index, const Source& hidden);
  const ModelPatch& told() const { return patch_; }

 private:
  void check_places() const;
  void check_vectors(bool has_table) const;

  const Checkpoint& file_;
  const ModelPatch& patch_;
  const MinimaxSizes& s_;
  Blocks& graph_;
  const MinimaxNames names_;
  const MinimaxLayers layers_;
  std::vector<std::int64_t> places_;
  Source control_;
  MinimaxTold read_;
};

// A patch's file by itself: what of it turns a hint into tokens, and settings for who applies it.
struct MinimaxFun {
  static constexpr Family family{"minimax-h3-fun", kPatchRole, 1,
                                 "Fun ControlNet of MiniMax H3, a model patch"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
