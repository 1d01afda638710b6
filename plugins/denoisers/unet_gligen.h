// plugins/denoisers/unet_gligen.h - GLIGEN (Li et al. 2023): a UNet is told what stands in which
// boxes of the picture. Files have a position net, which makes an object of a phrase's pooled
// vector and the waves of its box, and for each transformer's block of the UNet an attention that
// sees these objects ("fuser"), behind the attention of the tokens to each other. Formulas: the
// paper's, as ComfyUI and diffusers have them.
//
// A file is joined to the UNet's under a prefix, and the model built anew with its place in the
// configuration:
//
// gligens    list of records: prefix ("gligen.0.", of its tensors), file (its path, for messages)
//
// For the nth the model has an optional, constant input,
//
// gligen.<n>.boxes  (1, boxes, W + P) f32  a phrase's vector, then the waves of its box
//
// and blocks under "gligen.<n>", which hand on what they get where that input is missing. Files
// name the blocks as the original UNet does, or as diffusers. Blocks are pure; the builder belongs
// to one call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "unet_adapters.h"

namespace heddle::denoisers {

// A GLIGEN model by itself: its position net. Input "boxes" as above, output "objects" (1, most,
// C). Settings: phrase_width (W), place_width (P: of four numbers, sines and cosines of P / 8
// waves), most_boxes (ints).
struct UnetGligenFile {
  static constexpr Family family{"unet-gligen", "gligen", 1,
                                 "GLIGEN of Stable Diffusion 1.x and 2.x: boxes with phrases"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

// boxes (1, n, W + P) f32 -> (1, most, C): what is learnt for no box stands in the place of those
// that are missing.
struct UnetGligenObjects {
  static constexpr Info info{"unet.gligen.objects", 1,  "GLIGEN objects of boxes",
                             "blocks/unet",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> boxes{"boxes", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> most{"most", Widget{.number = 30}};
  static constexpr Weight no_phrase{"phrase.null"};
  static constexpr Weight no_place{"place.null"};
  static constexpr Weight enter{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight enter_bias{"in.bias"};
  static constexpr Weight middle{"middle.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight leave{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight leave_bias{"out.bias"};
  static constexpr Output<Tensor> out{"objects"};
  static constexpr auto ports = heddle::ports(boxes, most, no_phrase, no_place, enter, enter_bias,
                                              middle, middle_bias, leave, leave_bias, out);
  static void execute(Context& ctx);
};

// tokens (B, S, D) -> the same with what they find among each other and the objects (1, n, C)
// added, tanh(alpha) times, and what an MLP makes of that. boxes: where it is missing, tokens stay
// as they are.
struct UnetGligen {
  static constexpr Info info{"unet.gligen", 1,  "GLIGEN attention to objects",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> objects{"objects"};
  static constexpr Input<Tensor> boxes{"boxes", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<double> alpha{"alpha", Widget{}};          // of what they find
  static constexpr Input<double> mlp_alpha{"mlp_alpha", Widget{}};  // of what the MLP makes
  static constexpr Weight enter{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight enter_bias{"in.bias"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(
      tokens, objects, boxes, heads, eps, alpha, mlp_alpha, enter, enter_bias, norm1, norm1_bias,
      qkv, proj, proj_bias, norm2, norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// Adds the GLIGEN models of a configuration to the graph of a UNet.
class UnetGligens {
 public:
  // All arguments outlive the build. `file`: all joined.
  UnetGligens(const Checkpoint& file, const Value& config, Blocks& graph);
  bool empty() const { return models_.empty(); }
  // The tokens of a block behind the attention to each other, as the objects change them.
  Source added(const UnetBlockPlace& place, Source tokens) const;

 private:
  struct Model {
    std::string prefix, file, path, fusers;  // fusers: what stands before the names of blocks
    std::string input;
    Source boxes, objects;
  };
  const Checkpoint& file_;
  Blocks& graph_;
  std::vector<Model> models_;
};

}  // namespace heddle::denoisers
