#include "gemma4_sizes.h"

#include <algorithm>

namespace heddle::encoders {
namespace {

// From the config.json of the published models: E2B and E4B have windows of 512 tokens, 12B and 31B
// of 1024. E4B's last layers share, which nothing else in its file says.
constexpr std::int64_t kToldWindow = 512, kWindow = 1024, kE4bWidth = 2560;
constexpr int kE4bSharing = 18;
constexpr double kEps = 1e-6, kLogitCap = 30, kNearTheta = 1e4, kFarTheta = 1e6, kFarPart = 0.25;

struct Gemma4Reader {
  const Checkpoint& file;
  const LanguageNames& names;
  const Value& config;

  std::string weight(int layer, const char* module) const {
    return names.in_layer(layer, module) + ".weight";
  }
  std::int64_t rows(int layer, const char* module) const {
    return file.size(weight(layer, module), 0);
  }

  [[noreturn]] void refuse_heads(int layer, std::int64_t queries, std::int64_t keys,
                                 std::int64_t head) const {
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": layer " + std::to_string(layer) + " has queries of width " +
                    std::to_string(queries) + " and keys of width " + std::to_string(keys) +
                    ", which do not divide into heads of " + std::to_string(head) +
                    ". The file is damaged or of another model.");
  }

  // How many of the last layers have the keys and values of others.
  int count_sharing(int layers) const {
    if (config.has("num_kv_shared_layers"))
      return int(
          std::clamp<std::int64_t>(config.get<std::int64_t>("num_kv_shared_layers", 0), 0, layers));
    int own = 0;
    while (own < layers && file.has(weight(own, "k"))) ++own;
    if (own < layers) return layers - own;
    const std::int64_t inner = rows(0, "gate");
    for (int i = 0; i < layers; ++i)
      if (rows(i, "gate") != inner) return layers - i;
    const bool is_e4b = file.has(names.beside_layers("embed_tokens_per_layer") + ".weight") &&
                        file.size(names.tokens(), 1) == kE4bWidth;
    return is_e4b && layers > kE4bSharing ? kE4bSharing : 0;
  }

  bool is_near(int layer) const {
    const Value types = config.field("layer_types");
    if (layer < int(types.count()))
      return types.item(std::uint32_t(layer)).as<std::string>() != "full_attention";
    return file.size(weight(layer, "q_norm"), 0) == file.size(weight(0, "q_norm"), 0);
  }

  // The last of the first `own` layers that sees as much.
  int source_of(int layer, int own, bool near) const {
    for (int i = own - 1; i >= 0; --i)
      if (is_near(i) == near) return i;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": layer " + std::to_string(layer) +
                    " shares keys and values, and no layer before those that share is of its "
                    "kind. Give the config.json that belongs to this file.");
  }

  Gemma4LayerSizes layer(int index, int own) const {
    Gemma4LayerSizes s;
    s.is_near = is_near(index);
    if (index >= own) s.source = source_of(index, own, s.is_near);
    const int keys_of = s.source < 0 ? index : s.source;
    s.own_values = file.has(weight(keys_of, "v"));
    s.head = file.size(weight(index, "q_norm"), 0);
    const std::int64_t queries = rows(index, "q"), keys = rows(keys_of, "k"), head = s.head;
    if (head < 2 || head % 2 != 0 || queries < head || queries % head != 0 || keys < head ||
        keys % head != 0 || queries % keys != 0)
      refuse_heads(index, queries, keys, head);
    s.heads = queries / head, s.kv_heads = keys / head, s.inner = rows(index, "gate");
    return s;
  }
};

}  // namespace

Gemma4Sizes read_gemma4_sizes(const Checkpoint& file, const LanguageNames& names,
                              const Value& config) {
  const Gemma4Reader reader{file, names, config};
  for (const char* experts : {"layers.0.router.proj.weight", "layers.0.experts.gate_up_proj"})
    if (file.has(names.beside_layers(experts)))
      throw Error(HEDDLE_UNSUPPORTED,
                  file.path() +
                      ": this is a Gemma 4 whose layers have experts (26B-A4B), which is not "
                      "supported. Take E2B, E4B, 12B or 31B.");
  const std::string both_ways = config.get<std::string>("use_bidirectional_attention", "");
  if (both_ways == "all")
    throw Error(HEDDLE_UNSUPPORTED, file.path() +
                                        ": in this Gemma 4 tokens see those behind them "
                                        "(use_bidirectional_attention 'all'), which is not "
                                        "supported.");
  Gemma4Sizes s;
  s.vocabulary = file.size(names.tokens(), 0), s.width = file.size(names.tokens(), 1);
  const int layers = names.layers();
  s.own_layers = layers - reader.count_sharing(layers);
  for (int i = 0; i < layers; ++i) s.layers.push_back(reader.layer(i, s.own_layers));
  const std::string told = names.beside_layers("embed_tokens_per_layer") + ".weight";
  if (file.has(told)) {
    s.told_vocabulary = file.size(told, 0), s.told = file.size(told, 1) / layers;
    if (s.told * layers != file.size(told, 1))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": tensor '" + told + "' has rows of " +
                      std::to_string(file.size(told, 1)) + " numbers, which " +
                      std::to_string(layers) +
                      " layers do not share evenly. The file is damaged or of another model.");
  }
  s.sees_groups = both_ways == "vision" || (both_ways.empty() && s.told == 0);
  s.window = config.get<std::int64_t>("sliding_window", s.told > 0 ? kToldWindow : kWindow);
  s.eps = config.get<double>("rms_norm_eps", kEps);
  s.logit_cap = config.get<double>("final_logit_softcapping", kLogitCap);
  const Value turns = config.field("rope_parameters"), far = turns.field("full_attention");
  s.near_theta = turns.field("sliding_attention").get<double>("rope_theta", kNearTheta);
  s.far_theta = far.get<double>("rope_theta", kFarTheta);
  s.far_part = far.get<double>("partial_rotary_factor", kFarPart);
  return s;
}

}  // namespace heddle::encoders
