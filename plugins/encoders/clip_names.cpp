#include "clip_names.h"

#include <utility>

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

constexpr const char* kClipTokens = "embeddings.token_embedding.weight";
constexpr const char* kOpenClipTokens = "token_embedding.weight";
constexpr std::string_view kClipInner = "text_model.";

constexpr std::pair<const char*, const char*> kOpenClipModules[] = {
    {"layer_norm1", "ln_1"}, {"layer_norm2", "ln_2"},   {"self_attn.out_proj", "attn.out_proj"},
    {"mlp.fc1", "mlp.c_fc"}, {"mlp.fc2", "mlp.c_proj"},
};
constexpr const char* kClipThirds[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};

std::string without(std::string prefix, std::string_view inner) {
  if (prefix.ends_with(inner)) prefix.resize(prefix.size() - inner.size());
  return prefix;
}

heddle_status* list_clip_modules(const heddle_host*, const heddle_checkpoint* raw,
                                 heddle_module_found found, void* to) {
  return guard([&] {
    const Checkpoint file = Checkpoint::share(raw);
    const auto names = ClipNames::find(file);
    if (!names)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no CLIP text encoder");
    const auto give = [&](const std::string& module, const char* kind,
                          const std::vector<Part>& parts) {
      if (!file.has(parts.front().tensor)) return;
      const RawParts raw_parts(parts);
      // Not every version of transformers writes the prefix.
      for (const std::string& name : {std::string(kClipInner) + module, module})
        found(to, name.c_str(), kind, raw_parts.size(), raw_parts.data());
    };
    give("embeddings.token_embedding", "weight", {{names->tokens()}});
    give("embeddings.position_embedding", "weight", {{names->positions()}});
    for (const char* kind : {"weight", "bias"}) {
      give("final_layer_norm", kind, {{names->final_norm(kind)}});
      for (int i = 0; i < names->depth(); ++i) {
        const std::string at = "encoder.layers." + std::to_string(i) + ".";
        for (const auto& [module, open] : kOpenClipModules)
          give(at + module, kind, names->in_layer(i, module, kind));
        for (const char* third : kClipThirds)
          give(at + third, kind, names->in_layer(i, third, kind));
      }
    }
    if (!names->has_projection() || names->is_turned()) return;
    const std::vector<Part> parts{{names->projection()}};
    const RawParts raw_parts(parts);
    found(to, "text_projection", "weight", raw_parts.size(), raw_parts.data());
  });
}

}  // namespace

constinit const heddle_module_names_desc kClipModuleNames{sizeof(heddle_module_names_desc), "clip",
                                                          "by the names of transformers",
                                                          &list_clip_modules, nullptr};

std::optional<ClipNames> ClipNames::find(const Checkpoint& file) {
  if (const auto prefix = blocks::prefix_before(file, kClipTokens))
    if (file.has(*prefix + "encoder.layers.0.self_attn.q_proj.weight"))
      return ClipNames(file, false, *prefix);
  if (const auto prefix = blocks::prefix_before(file, kOpenClipTokens))
    if (file.has(*prefix + "transformer.resblocks.0.attn.in_proj_weight"))
      return ClipNames(file, true, *prefix);
  return std::nullopt;
}

std::optional<ClipNames> ClipNames::find_tower(const Checkpoint& file) {
  if (const auto prefix = blocks::prefix_before(file, "embeddings.class_embedding"))
    if (file.has(*prefix + "encoder.layers.0.self_attn.q_proj.weight"))
      return ClipNames(file, false, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "class_embedding"))
    if (file.has(*prefix + "transformer.resblocks.0.attn.in_proj_weight"))
      return ClipNames(file, true, *prefix);
  return std::nullopt;
}

std::string ClipNames::tokens() const {
  return prefix_ + (is_open_ ? kOpenClipTokens : kClipTokens);
}

std::string ClipNames::positions() const {
  return prefix_ + (is_open_ ? "positional_embedding" : "embeddings.position_embedding.weight");
}

int ClipNames::depth() const {
  return blocks::layer_count(file_,
                             prefix_ + (is_open_ ? "transformer.resblocks." : "encoder.layers."));
}

std::vector<Part> ClipNames::in_layer(int index, const std::string& module,
                                      const char* kind) const {
  const std::string number = std::to_string(index) + ".";
  if (!is_open_) return {{prefix_ + "encoder.layers." + number + module + "." + kind}};
  const std::string at = prefix_ + "transformer.resblocks." + number;
  for (const auto& [name, open] : kOpenClipModules)
    if (module == name) return {{at + open + "." + kind}};
  const std::string joined = at + "attn.in_proj_" + kind;
  for (std::int64_t third = 0; third < 3; ++third)
    if (module == kClipThirds[third] && file_.has(joined)) {
      const std::int64_t rows = file_.size(joined, 0) / 3;
      return {{joined, third * rows, (third + 1) * rows}};
    }
  return {{joined}};
}

std::vector<Part> ClipNames::qkv(int index, const char* kind) const {
  if (is_open_)
    return {{prefix_ + "transformer.resblocks." + std::to_string(index) + ".attn.in_proj_" + kind}};
  std::vector<Part> parts;
  for (const char* third : kClipThirds) parts.push_back(in_layer(index, third, kind).front());
  return parts;
}

std::string ClipNames::final_norm(const char* kind) const {
  return prefix_ + (is_open_ ? "ln_final." : "final_layer_norm.") + kind;
}

// text_projection stands beside "text_model.", not inside.
std::string ClipNames::projection() const {
  if (is_open_) return prefix_ + "text_projection";
  return without(prefix_, kClipInner) + "text_projection.weight";
}

std::string ClipNames::tower_projection() const {
  if (is_open_) return prefix_ + "proj";
  return without(prefix_, "vision_model.") + "visual_projection.weight";
}

}  // namespace heddle::encoders
