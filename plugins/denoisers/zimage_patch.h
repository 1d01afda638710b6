// plugins/denoisers/zimage_patch.h - Z-Image's union ControlNet (Fun), a model patch
// (model_patches.h): a stream of the hint's tokens that runs beside the model's, through layers
// like its own, and adds what it makes to the picture's tokens behind some of them. Source of the
// architecture: ZImageControlNetModel of diffusers, by the publishers of the model. As in ComfyUI
// the hint's stream holds tokens of the picture alone; those of diffusers have the text's behind
// them, and what fills both up.
//
// Files of three kinds. 1.0: the hint passes the refiners by itself, then n layers beside the
// model's. 2.1: refiners of its own beside the model's, which add to them, too. 2.0: in their place
// the n layers once more; its refiners are not there, or were never trained.
//
// Hints (1|B, C, H, W): the latent of a picture, or that, a mask that is 1 where the picture stays,
// and the latent of the picture that is drawn anew in part.
//
// Blocks of "patch.<n>": hint, rows, refine.<k>.{begin, modulation, block, add}, the same of
// layer.<k>. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include <optional>

#include "model_patches.h"
#include "zimage_layers.h"

namespace heddle::denoisers {

// The rows of rotary tables (L, d/2) that are the picture's, without what fills it up: (S, d/2).
struct ZImagePictureRows {
  static constexpr Info info{"zimage.picture_rows", 1,  "Z-Image rotary table of the picture",
                             "blocks/zimage",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> all_cos{"all_cos"};
  static constexpr Input<Tensor> all_sin{"all_sin"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, H, W)"};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(all_cos, all_sin, x, multiple, cos, sin);
  static void execute(Context& ctx);
};

// control (1|B, S, D) through a linear layer, with the picture's tokens of hidden (B, L, D), which
// are its last but for what fills them up: (B, S, D). A group of devices may have some of the
// tokens of each, not the same ones.
struct ZImageControlBegin {
  static constexpr Info info{"zimage.control_begin", 1,  "Z-Image ControlNet input",
                             "blocks/zimage",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> control{"control", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"control", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(control, hidden, multiple, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) -> the same, with `strength` times what a linear layer makes of control (B, S,
// D) added to the picture's tokens. Divided as ZImageControlBegin is.
struct ZImageControlAdd {
  static constexpr Info info{"zimage.control_add", 1,  "Z-Image ControlNet residual",
                             "blocks/zimage",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> control{"control", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Input<std::int64_t> multiple{"multiple", Widget{.number = 32}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, control, strength, multiple, weight, bias, out);
  static void execute(Context& ctx);
};

// One patch in the graph of its model. One call's thread.
class ZImagePatch {
 public:
  // All arguments outlive this object. `file`: both joined. Throws what is wrong with the patch.
  ZImagePatch(const Checkpoint& file, const ModelPatch& patch, const NextDitKind& kind,
              const ZImageSizes& sizes, Blocks& graph);

  // x: the latent; img: its tokens before the refiners; told: what the model's layers read.
  void begin(const Source& x, const Source& img, const ZImageTold& told);
  // Behind refiner `index`.
  Source after_refiner(int index, const Source& img);
  // What the model's first layer reads.
  void join(const Source& hidden) { read_ = hidden; }
  // Behind layer `index`.
  Source after_layer(int index, const Source& hidden);
  const ModelPatch& told() const { return patch_; }

 private:
  // The layers run once for the model's refiners, and once for its layers.
  enum class Part { refiners, layers };
  void run(Part part, const std::string& list, int index);
  Source added(Part part, const std::string& list, int index, const Source& hidden,
               const Source& control) const;
  std::string path_of(Part part, int index) const;

  const Checkpoint& file_;
  const ModelPatch& patch_;
  const NextDitKind& kind_;
  const ZImageSizes& s_;
  Blocks& graph_;
  const ZImageNames names_;
  const ZImageLayers layers_;
  int count_ = 0, refiners_ = 0;
  enum class Kind { alone, beside, repeated } refines_ = Kind::alone;
  Source control_, read_;
  ZImageTold told_;
};

// A patch's file by itself: what of it turns a hint into tokens, and settings for who applies it.
struct ZImageFun {
  static constexpr Family family{"z-image-fun", kPatchRole, 1,
                                 "Z-Image's union ControlNet, a model patch"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
