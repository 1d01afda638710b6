#include "qwen_names.h"

#include "module_table.h"
#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

constexpr std::string_view kLastModulation = "final_layer.adaLN_modulation.1";

constexpr Module kQwenTop[] = {
    {"img_in", {"img_in"}},
    {"txt_norm", {"txt_norm"}},
    {"txt_in", {"txt_in"}},
    {"time_in.in_layer", {"time_text_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_text_embed.timestep_embedder.linear_2"}},
    {kLastModulation, {"norm_out.linear"}},
    {"final_layer.linear", {"proj_out"}},
};
constexpr Module kQwenBlock[] = {
    {"img_mod.lin", {"img_mod.1"}},
    {"txt_mod.lin", {"txt_mod.1"}},
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
    {"img_mlp.0", {"img_mlp.net.0.proj"}},
    {"img_mlp.2", {"img_mlp.net.2"}},
    {"txt_mlp.0", {"txt_mlp.net.0.proj"}},
    {"txt_mlp.2", {"txt_mlp.net.2"}},
};

}  // namespace

std::optional<QwenNames> QwenNames::find(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "transformer_blocks.0.img_mod.1.weight");
  if (!prefix) return std::nullopt;
  for (const char* name :
       {"img_in.weight", "txt_norm.weight", "transformer_blocks.0.attn.norm_added_k.weight",
        "time_text_embed.timestep_embedder.linear_1.weight"})
    if (!file.has(*prefix + name)) return std::nullopt;
  return QwenNames(file, *prefix, "transformer_blocks.");
}

std::optional<QwenNames> QwenNames::find_fun_control(const Checkpoint& file,
                                                     const std::string& prefix) {
  for (const char* name : {"control_img_in.weight", "control_blocks.0.after_proj.weight",
                           "control_blocks.0.attn.norm_added_k.weight"})
    if (!file.has(prefix + name)) return std::nullopt;
  return QwenNames(file, prefix, "control_blocks.");
}

std::vector<Part> QwenNames::top(std::string_view module, const char* kind) const {
  std::vector<Part> parts = diffusers_parts(file_, prefix_, look_up(kQwenTop, module), kind);
  // The file has (scale, shift), FluxFinal reads (shift, scale).
  if (module != kLastModulation) return parts;
  return halves_swapped(parts.front().tensor, file_.size(prefix_ + "img_in.weight", 0));
}

std::vector<Part> QwenNames::in_block(int index, std::string_view module, const char* kind) const {
  return diffusers_parts(file_, block_prefix() + std::to_string(index) + ".",
                         look_up(kQwenBlock, module), kind);
}

void QwenNames::each_module(const Visit& visit) const {
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string name = file_.name(i);
    if (!name.starts_with(prefix_)) continue;
    const auto [module, kind] = named_module(name.substr(prefix_.size()));
    visit(module, kind, {{name}});
  }
}

}  // namespace heddle::denoisers
