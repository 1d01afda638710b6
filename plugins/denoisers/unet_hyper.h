// plugins/denoisers/unet_hyper.h - hypernetworks: small networks that change what the keys and the
// values of a UNet's attentions are made of, x + strength net(x), where x is as wide as they read.
// Formulas: ComfyUI's, without dropout. Their files name the networks of a width "<width>.0" (keys)
// and "<width>.1" (values), and their layers by numbers. Blocks are pure and have no instance; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "unet_patches.h"

namespace heddle::denoisers {

// x (B, T, W) -> (B, T, W'): a matrix, a function of the numbers, a layer norm where there is one.
// function: the place of its name in kHyperFunctions.
struct UnetHyperLayer {
  static constexpr Info info{"unet.hyper.layer", 1,  "UNet hypernetwork's layer",
                             "blocks/unet",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<std::int64_t> function{"function", Widget{}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, function, weight, bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};
inline constexpr const char* kHyperFunctions[] = {"linear", "relu",    "leakyrelu", "elu", "swish",
                                                  "tanh",   "sigmoid", "softsign",  "mish"};

// x (B, T, W), change (B, T, W) -> x + strength change.
struct UnetHyperAdd {
  static constexpr Info info{"unet.hyper.add", 1,  "UNet with a hypernetwork",
                             "blocks/unet",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> change{"change"};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, change, strength, out);
  static void execute(Context& ctx);
};

// tokens (B, S, D) -> normed (B, S, D).
struct UnetSelfNorm {
  static constexpr Info info{"unet.self.norm", 1,  "UNet self-attention's norm",
                             "blocks/unet",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"normed"};
  static constexpr auto ports = heddle::ports(tokens, eps, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// What keys and values are made of.
struct KeysValues {
  Source keys, values;
};
// Blocks "<path>.hyper.<n>.keys.<layer>" and so on of all hypernetworks that have networks of this
// width; nothing where there are none.
std::optional<KeysValues> add_hypernetworks(const std::vector<HyperPatch>& patches,
                                            const Checkpoint& file, const std::string& path,
                                            const Source& x, std::int64_t width, Blocks& graph);
bool has_hypernetwork(const std::vector<HyperPatch>& patches, const Checkpoint& file,
                      std::int64_t width);

}  // namespace heddle::denoisers
