// What a LoRA file holds, module by module, whichever program wrote it: kohya's scripts
// ("lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight"), diffusers
// ("transformer.single_transformer_blocks.0.attn.to_q.lora_A.weight") or PEFT
// ("base_model.model.<module>.lora_A.default.weight"). Immutable once read; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::loaders {

// The tensors of one module, by name; empty where there is none.
struct LoraModule {
  std::string up, down;  // their product is added to the weight
  std::string alpha;     // one number: the product counts alpha / rank; absent: 1
  std::string up_bias;   // counts like the product, added to the bias
  std::string difference, bias_difference;  // added as they are
  std::string replacement;                  // in the place of the weight, however strong
  // Those of other kinds (lora_forms.h), by what they are: "hada_w1_a", "dora_scale", ...
  std::map<std::string, std::string> factors;
  std::vector<std::string> keys;  // all of these
};

// Which part of a pipeline a module belongs to.
enum class LoraPlace { denoiser, first_encoder, second_encoder };

struct LoraAddress {
  LoraPlace place = LoraPlace::denoiser;
  std::string module;  // without what training programs put in front; dots may be underscores
};
LoraAddress lora_address(const std::string& module);

struct LoraFile {
  Checkpoint file;
  std::map<std::string, LoraModule> modules;  // by their names in the file
  std::vector<std::string> unknown;           // keys that are of no scheme
};

// Throws unsupported, naming the keys, for what changes embeddings, and
// invalid_argument for half of a product.
LoraFile read_lora(const std::string& path);

// "12 of its 304 keys ...: a, b, c, ...": the first few.
std::string some_of(const std::vector<std::string>& keys);

}  // namespace heddle::loaders
