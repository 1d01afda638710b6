#include "lora_file.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace heddle::loaders {
namespace {

using Slot = std::string LoraModule::*;

// A key is a module's name and one of these.
struct Suffix {
  std::string_view text;
  Slot slot;
};
constexpr Suffix kSuffixes[] = {
    {".lora_up.weight", &LoraModule::up},
    {".lora_down.weight", &LoraModule::down},
    {"_lora.up.weight", &LoraModule::up},
    {"_lora.down.weight", &LoraModule::down},
    {".lora.up.weight", &LoraModule::up},
    {".lora.down.weight", &LoraModule::down},
    {".lora_linear_layer.up.weight", &LoraModule::up},
    {".lora_linear_layer.down.weight", &LoraModule::down},
    {".lora_B", &LoraModule::up},
    {".lora_A", &LoraModule::down},
    {".alpha", &LoraModule::alpha},
    {".diff", &LoraModule::difference},
    {".diff_b", &LoraModule::bias_difference},
    {".w_norm", &LoraModule::difference},
    {".b_norm", &LoraModule::bias_difference},
    {".set_weight", &LoraModule::replacement},
};

constexpr Suffix kProcessorSuffixes[] = {{".up.weight", &LoraModule::up},
                                         {".down.weight", &LoraModule::down}};

// PEFT writes an adapter's name between this and ".weight", or nothing.
struct Marker {
  std::string_view text, end;
  Slot slot;
};
constexpr Marker kMarkers[] = {
    {".lora_A.", "weight", &LoraModule::down},
    {".lora_B.", "weight", &LoraModule::up},
    {".lora_B.", "bias", &LoraModule::up_bias},
};

// Of what is no plain product: by what its factors are called.
struct FactorSuffix {
  std::string_view text, factor;
};
constexpr FactorSuffix kFactors[] = {
    {".hada_w1_a", "hada_w1_a"},
    {".hada_w1_b", "hada_w1_b"},
    {".hada_w2_a", "hada_w2_a"},
    {".hada_w2_b", "hada_w2_b"},
    {".hada_t1", "hada_t1"},
    {".hada_t2", "hada_t2"},
    {".lokr_w1", "lokr_w1"},
    {".lokr_w1_a", "lokr_w1_a"},
    {".lokr_w1_b", "lokr_w1_b"},
    {".lokr_w2", "lokr_w2"},
    {".lokr_w2_a", "lokr_w2_a"},
    {".lokr_w2_b", "lokr_w2_b"},
    {".lokr_t2", "lokr_t2"},
    {".lora_mid.weight", "lora_mid"},
    {".oft_blocks", "oft_blocks"},
    {".rescale", "rescale"},
    {".a1.weight", "a1"},
    {".a2.weight", "a2"},
    {".b1.weight", "b1"},
    {".b2.weight", "b2"},
    {".dora_scale", "dora_scale"},
    {".lora_magnitude_vector", "magnitude"},
    {".lora_magnitude_vector.weight", "magnitude"},
    {".lora_magnitude_vector.default.weight", "magnitude"},
    {".reshape_weight", "reshape_weight"},
};

struct Prefix {
  std::string_view text;
  std::optional<LoraPlace> place;
};
constexpr Prefix kPrefixes[] = {
    {"base_model.model.", std::nullopt},
    {"text_encoder.", LoraPlace::first_encoder},
    {"text_encoder_2.", LoraPlace::second_encoder},
    {"lora_te_", LoraPlace::first_encoder},
    {"lora_te1_", LoraPlace::first_encoder},
    {"lora_te2_", LoraPlace::second_encoder},
    {"lora_te3_", LoraPlace::second_encoder},
    {"lora_unet__", LoraPlace::denoiser},  // those for Wan 2.1 Fun
    {"lora_unet_", LoraPlace::denoiser},
    {"lora_transformer_", LoraPlace::denoiser},
    {"lycoris_", LoraPlace::denoiser},
    {"model.diffusion_model.", LoraPlace::denoiser},
    {"diffusion_model.", LoraPlace::denoiser},
    {"transformer.", LoraPlace::denoiser},
    {"unet.", LoraPlace::denoiser},
};

struct Key {
  std::string module;
  Slot slot = nullptr;
  std::string factor = {};  // where there is no slot

  std::string& name_in(LoraModule& of) const {
    return slot != nullptr ? of.*slot : of.factors[factor];
  }
};

std::optional<Key> parse(const std::string& key) {
  for (const Marker& marker : kMarkers) {
    const std::size_t at = key.rfind(marker.text);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(key).substr(at + marker.text.size());
    const bool named = rest.ends_with(marker.end) && rest.size() > marker.end.size() &&
                       rest.find('.') == rest.size() - marker.end.size() - 1;
    if (rest == marker.end || named) return Key{key.substr(0, at), marker.slot};
  }
  // Black Forest Labs' Canny and Depth bring norms of their own.
  constexpr std::string_view kNorm = "_norm.scale", kScale = ".scale";
  if (key.ends_with(kNorm))
    return Key{key.substr(0, key.size() - kScale.size()), &LoraModule::replacement};
  for (const Suffix& suffix : kSuffixes)
    if (key.ends_with(suffix.text) && key.size() > suffix.text.size())
      return Key{key.substr(0, key.size() - suffix.text.size()), suffix.slot};
  // Of attentions' processors, as USO's and XLabs' files have them: "qkv_lora1.down.weight".
  for (const Suffix& suffix : kProcessorSuffixes) {
    const std::string module = key.substr(0, key.size() - std::min(key.size(), suffix.text.size()));
    if (key.ends_with(suffix.text) && (module.ends_with("_lora1") || module.ends_with("_lora2")))
      return Key{module, suffix.slot};
  }
  for (const FactorSuffix& suffix : kFactors)
    if (key.ends_with(suffix.text) && key.size() > suffix.text.size())
      return Key{key.substr(0, key.size() - suffix.text.size()), nullptr,
                 std::string(suffix.factor)};
  return std::nullopt;
}

void refuse_embeddings(const Checkpoint& file) {
  std::vector<std::string> keys;
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (const std::string key = file.name(i); key.find(".lora_embedding_") != key.npos)
      keys.push_back(key);
  if (!keys.empty())
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": " + std::to_string(keys.size()) + " of its " +
                    std::to_string(file.size()) +
                    " keys change embeddings, which is not supported: " + some_of(keys) +
                    ". Without them the picture would be another one.");
}

void require_whole(const Checkpoint& file, const std::string& name, const LoraModule& module) {
  const bool up = !module.up.empty(), down = !module.down.empty();
  if (up != down)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": the module '" + name + "' has the factor '" +
                    (up ? module.up : module.down) +
                    "' but not the other one. The file is probably incomplete.");
}

}  // namespace

std::string some_of(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, keys.size()); ++i)
    text += (i == 0 ? "" : ", ") + keys[i];
  return keys.size() > kShown ? text + ", ..." : text;
}

namespace {

// Older files of diffusers have attentions' LoRAs in their "processors", where the last projection
// is no list ("attn1.processor.to_out").
std::string without_processor(std::string_view module) {
  constexpr std::string_view kProcessor = ".processor.", kList = ".to_out";
  std::string plain(module);
  const std::size_t at = plain.find(kProcessor);
  if (at == std::string::npos) return plain;
  plain.replace(at, kProcessor.size(), ".");
  return plain.ends_with(kList) ? plain + ".0" : plain;
}

// ComfyUI's own names of text encoders: "text_encoders.gemma3_12b.transformer.<module>", also
// without the encoder's. What is left is the module.
std::optional<LoraPlace> comfyui_encoder(std::string_view& left) {
  constexpr std::string_view kAll = "text_encoders.", kInner = "transformer.";
  if (!left.starts_with(kAll)) return {};
  std::string_view rest = left.substr(kAll.size()), name;
  if (!rest.starts_with(kInner)) {
    name = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (!rest.starts_with(kInner)) return {};
  }
  left = rest.substr(kInner.size());
  const bool is_second = name == "clip_g" || name.find("t5") != name.npos;
  return is_second ? LoraPlace::second_encoder : LoraPlace::first_encoder;
}

}  // namespace

LoraAddress lora_address(const std::string& module) {
  std::string_view left = module;
  std::optional<LoraPlace> place = comfyui_encoder(left);
  for (bool more = true; more;) {
    more = false;
    for (const Prefix& prefix : kPrefixes) {
      if (!left.starts_with(prefix.text) || (place && prefix.place)) continue;
      left.remove_prefix(prefix.text.size());
      if (prefix.place) place = prefix.place;
      more = true;
    }
  }
  return {place.value_or(LoraPlace::denoiser), without_processor(left)};
}

LoraFile read_lora(const std::string& path) {
  LoraFile result{Checkpoint::open(path), {}, {}};
  const Checkpoint& file = result.file;
  refuse_embeddings(file);
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string key = file.name(i);
    const std::optional<Key> parsed = parse(key);
    if (!parsed) {
      result.unknown.push_back(key);
      continue;
    }
    LoraModule& module = result.modules[parsed->module];
    std::string& name = parsed->name_in(module);
    if (!name.empty())
      throw Error(HEDDLE_INVALID_ARGUMENT, path + ": '" + name + "' and '" + key +
                                               "' are two adapters for one module. Save them as "
                                               "files of their own, and load one after the other.");
    name = key;
    module.keys.push_back(key);
  }
  for (const auto& [name, module] : result.modules) require_whole(file, name, module);
  return result;
}

}  // namespace heddle::loaders
