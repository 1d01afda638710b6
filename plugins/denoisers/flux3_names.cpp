#include "flux3_names.h"

#include <string_view>

#include "module_table.h"
#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

struct Flux3Renamed {
  std::string_view original, diffusers;
};
// What names outside blocks begin with.
constexpr Flux3Renamed kFlux3Outside[] = {
    {"emb_in.", "x_embedders."},
    {"txt_in.", "context_embedder."},
    {"time_in.in_layer.", "timestep_embedder.linear_1."},
    {"time_in.out_layer.", "timestep_embedder.linear_2."},
    {"ref_time_in.in_layer.", "target_timestep_embedder.linear_1."},
    {"ref_time_in.out_layer.", "target_timestep_embedder.linear_2."},
    {"final_layer.image.linear.", "proj_out."},
    {"final_layer.image.adaLN_modulation.1.", "norm_out.linear."},
};
// What those of blocks begin with; txt_mode_blocks are called the same.
constexpr Flux3Renamed kFlux3Lists[] = {
    {"content_mode_blocks.", "mode_blocks."},
    {"single_blocks.", "single_transformer_blocks."},
};
// What stands in the names of blocks and modulations.
constexpr Flux3Renamed kFlux3Parts[] = {
    {".q_proj.", ".attn.to_q."},
    {".k_proj.", ".attn.to_k."},
    {".v_proj.", ".attn.to_v."},
    {".attn_out.", ".attn.to_out.0."},
    {".mlp_in.", ".ff.linear_in."},
    {".mlp_out.", ".ff.linear_out."},
    {".norm.query_norm.scale", ".attn.norm_q.weight"},
    {".norm.key_norm.scale", ".attn.norm_k.weight"},
    {".lin.", ".linear."},
};
constexpr const char* kFlux3Final = "final_layer.image.adaLN_modulation.1.weight";

std::string flux3_renamed(std::string name, std::string_view Flux3Renamed::*from,
                          std::string_view Flux3Renamed::*to) {
  for (const Flux3Renamed& outside : kFlux3Outside)
    if (name.starts_with(outside.*from))
      return name.replace(0, (outside.*from).size(), outside.*to);
  for (const Flux3Renamed& list : kFlux3Lists)
    if (name.starts_with(list.*from)) {
      name.replace(0, (list.*from).size(), list.*to);
      break;
    }
  for (const Flux3Renamed& part : kFlux3Parts)
    if (const std::size_t at = name.find(part.*from); at != name.npos)
      name.replace(at, (part.*from).size(), part.*to);
  return name;
}
std::string flux3_to_diffusers(const std::string& name) {
  return flux3_renamed(name, &Flux3Renamed::original, &Flux3Renamed::diffusers);
}
std::string flux3_to_original(const std::string& name) {
  return flux3_renamed(name, &Flux3Renamed::diffusers, &Flux3Renamed::original);
}

}  // namespace

std::optional<Flux3Names> Flux3Names::find(const Checkpoint& file) {
  for (const bool diffusers : {false, true}) {
    const auto named = [&](const char* original) {
      return diffusers ? flux3_to_diffusers(original) : std::string(original);
    };
    const auto prefix =
        blocks::prefix_before(file, named("early_stream_modulations.image.lin.weight"));
    if (prefix && file.has(*prefix + named("emb_in.image.weight")) &&
        file.has(*prefix + named("single_blocks.0.q_proj.weight")))
      return Flux3Names(file, diffusers, *prefix);
  }
  return std::nullopt;
}

std::string Flux3Names::one(const std::string& original) const {
  return prefix_ + (diffusers_ ? flux3_to_diffusers(original) : original);
}

std::vector<Part> Flux3Names::parts(const std::string& original, std::int64_t rows) const {
  const std::string tensor = one(original);
  if (diffusers_ && original == kFlux3Final) return halves_swapped(tensor, rows / 2);
  return {{tensor}};
}

int Flux3Names::count(const std::string& list) const {
  return blocks::layer_count(file_, one(list + "."));
}

void Flux3Names::each_module(const Visit& visit) const {
  // By the other layout's name the halves of the last modulation are the other way round.
  const std::string original = kFlux3Final,
                    other = diffusers_ ? original : flux3_to_diffusers(original);
  const auto visit_ordered = [&](const std::string& module, const char* kind,
                                 const std::vector<Part>& parts) {
    const bool is_swapped = module + "." + kind == other;
    const std::string& tensor = parts.front().tensor;
    visit(module, kind, is_swapped ? halves_swapped(tensor, file_.size(tensor, 0) / 2) : parts);
  };
  each_renamed_module(file_, prefix_, diffusers_ ? flux3_to_original : flux3_to_diffusers,
                      visit_ordered);
}

void Flux3Names::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  const auto as_it_is = [](const std::string& name) { return name; };
  each_renamed_tensor(file_, prefix_, diffusers_ ? flux3_to_original : Rename(as_it_is),
                      [&](const std::string& tensor, const std::vector<Part>& found) {
                        visit(tensor, parts(tensor, file_.size(found.front().tensor, 0)));
                      });
}

}  // namespace heddle::denoisers
