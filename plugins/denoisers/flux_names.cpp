#include "flux_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

// A module by its original name and by the names of its parts in diffusers.
struct Module {
  std::string_view original;
  const char* parts[3];
  const char* fused =
      nullptr;  // one tensor that diffusers' fuse_qkv_projections() writes in their place
};

constexpr Module kTop[] = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"time_in.in_layer", {"time_text_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_text_embed.timestep_embedder.linear_2"}},
    {"vector_in.in_layer", {"time_text_embed.text_embedder.linear_1"}},
    {"vector_in.out_layer", {"time_text_embed.text_embedder.linear_2"}},
    {"guidance_in.in_layer", {"time_text_embed.guidance_embedder.linear_1"}},
    {"guidance_in.out_layer", {"time_text_embed.guidance_embedder.linear_2"}},
    {"final_layer.adaLN_modulation.1", {"norm_out.linear"}},
    {"final_layer.linear", {"proj_out"}},
};
constexpr Module kDouble[] = {
    {"img_mod.lin", {"norm1.linear"}},
    {"txt_mod.lin", {"norm1_context.linear"}},
    {"img_attn.qkv", {"attn.to_q", "attn.to_k", "attn.to_v"}, "attn.to_qkv"},
    {"txt_attn.qkv",
     {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"},
     "attn.to_added_qkv"},
    {"img_attn.norm.query_norm", {"attn.norm_q"}},
    {"img_attn.norm.key_norm", {"attn.norm_k"}},
    {"txt_attn.norm.query_norm", {"attn.norm_added_q"}},
    {"txt_attn.norm.key_norm", {"attn.norm_added_k"}},
    {"img_attn.proj", {"attn.to_out.0"}},
    {"txt_attn.proj", {"attn.to_add_out"}},
    {"img_mlp.0", {"ff.net.0.proj"}},
    {"img_mlp.2", {"ff.net.2"}},
    {"txt_mlp.0", {"ff_context.net.0.proj"}},
    {"txt_mlp.2", {"ff_context.net.2"}},
};
constexpr Module kSingle[] = {
    {"modulation.lin", {"norm.linear"}},
    {"linear1.qkv", {"attn.to_q", "attn.to_k", "attn.to_v"}, "attn.to_qkv"},
    {"linear1.mlp", {"proj_mlp"}},
    {"norm.query_norm", {"attn.norm_q"}},
    {"norm.key_norm", {"attn.norm_k"}},
    {"linear2", {"proj_out"}},
};

template <std::size_t N>
const Module& look_up(const Module (&table)[N], std::string_view original) {
  for (const Module& module : table)
    if (module.original == original) return module;
  throw Error(HEDDLE_INTERNAL, "FLUX has no module '" + std::string(original) + "'");
}

std::vector<Part> diffusers_parts(const Checkpoint& file, const std::string& at,
                                  const Module& module, const char* kind) {
  const std::string tail = std::string(".") + kind;
  if (module.fused != nullptr && file.has(at + module.fused + tail))
    return {{at + module.fused + tail}};
  std::vector<Part> parts;
  for (const char* name : module.parts)
    if (name != nullptr) parts.push_back({at + name + tail});
  return parts;
}

// The original layout calls the weight of an RMS norm its scale.
std::string original_name(const std::string& at, std::string_view module, const char* kind) {
  const bool norm = module.ends_with("_norm");
  return at + std::string(module) + "." + (norm ? "scale" : kind);
}

}  // namespace

std::optional<FluxNames> FluxNames::find(const Checkpoint& file) {
  if (const auto prefix =
          blocks::prefix_before(file, "double_blocks.0.img_attn.norm.key_norm.scale"))
    if (file.has(*prefix + "img_in.weight") && file.has(*prefix + "vector_in.in_layer.weight"))
      return FluxNames(file, FluxLayout::original, *prefix);
  if (const auto prefix =
          blocks::prefix_before(file, "transformer_blocks.0.attn.norm_added_k.weight"))
    if (file.has(*prefix + "x_embedder.weight") &&
        file.has(*prefix + "time_text_embed.text_embedder.linear_1.weight") &&
        file.has(*prefix + "single_transformer_blocks.0.proj_mlp.weight"))
      return FluxNames(file, FluxLayout::diffusers, *prefix);
  return std::nullopt;
}

std::string FluxNames::double_prefix() const {
  return prefix_ + (layout_ == FluxLayout::original ? "double_blocks." : "transformer_blocks.");
}
std::string FluxNames::single_prefix() const {
  return prefix_ +
         (layout_ == FluxLayout::original ? "single_blocks." : "single_transformer_blocks.");
}

std::int64_t FluxNames::hidden() const { return file_.size(one(top("img_in", "weight")), 0); }

std::vector<Part> FluxNames::top(std::string_view module, const char* kind) const {
  const Module& row = look_up(kTop, module);
  if (layout_ == FluxLayout::original) return {{original_name(prefix_, module, kind)}};
  std::vector<Part> parts = diffusers_parts(file_, prefix_, row, kind);
  // diffusers keeps (scale, shift) in the last modulation, the original (shift, scale).
  if (module != "final_layer.adaLN_modulation.1") return parts;
  const std::string name = one(parts);
  return {{name, hidden(), 2 * hidden()}, {name, 0, hidden()}};
}

std::vector<Part> FluxNames::in_double(int index, std::string_view module, const char* kind) const {
  const Module& row = look_up(kDouble, module);
  const std::string at = double_prefix() + std::to_string(index) + ".";
  if (layout_ == FluxLayout::diffusers) return diffusers_parts(file_, at, row, kind);
  return {{original_name(at, module, kind)}};
}

std::vector<Part> FluxNames::in_single(int index, std::string_view module, const char* kind) const {
  const Module& row = look_up(kSingle, module);
  const std::string at = single_prefix() + std::to_string(index) + ".";
  if (layout_ == FluxLayout::diffusers) return diffusers_parts(file_, at, row, kind);
  // linear1 is (q, k, v, mlp) in one tensor.
  const std::string fused = at + "linear1." + kind;
  if (module == "linear1.qkv") return {{fused, 0, 3 * hidden()}};
  if (module == "linear1.mlp") return {{fused, 3 * hidden(), -1}};
  return {{original_name(at, module, kind)}};
}

}  // namespace heddle::denoisers
