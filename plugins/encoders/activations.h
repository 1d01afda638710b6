// plugins/encoders/activations.h - the activations of transformers' configs under the names of the
// op catalogue. Pure, any thread.
#pragma once

#include <heddle/abi/ops.h>
#include <heddle/plugin.hpp>

namespace heddle::encoders {

// "gelu", "quick_gelu", "gelu_new", ... Throws when the catalogue has no such function.
inline heddle_activation activation_named(std::string_view name) {
  if (name == "quick_gelu") return HEDDLE_ACT_QUICK_GELU;
  if (name == "gelu") return HEDDLE_ACT_GELU;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    return HEDDLE_ACT_GELU_TANH;
  if (name == "relu") return HEDDLE_ACT_RELU;
  if (name == "silu" || name == "swish") return HEDDLE_ACT_SILU;
  throw Error(HEDDLE_UNSUPPORTED, "the config names the activation '" + std::string(name) +
                                      "'; known are gelu, quick_gelu, gelu_new, gelu_pytorch_tanh, "
                                      "gelu_fast, relu, silu and swish");
}

}  // namespace heddle::encoders
