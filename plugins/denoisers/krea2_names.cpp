#include "krea2_names.h"

#include <string_view>

#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

constexpr std::string_view kModulations = ".mod.lin";  // of a block, by the original names

struct Renamed {
  std::string_view original, diffusers;
};
// What a name begins with; the first that fits counts.
constexpr Renamed kBeginnings[] = {
    {"first.", "img_in."},
    {"tmlp.0.", "time_embed.linear_1."},
    {"tmlp.2.", "time_embed.linear_2."},
    {"tproj.1.", "time_mod_proj."},
    {"txtmlp.0.scale", "txt_in.norm.weight"},
    {"txtmlp.1.", "txt_in.linear_1."},
    {"txtmlp.3.", "txt_in.linear_2."},
    {"last.linear.", "final_layer.linear."},
    {"last.norm.scale", "final_layer.norm.weight"},
    {"last.modulation.lin", "final_layer.scale_shift_table"},
    {"txtfusion.", "text_fusion."},
    {"blocks.", "transformer_blocks."},
};
// What stands in the names of blocks.
constexpr Renamed kParts[] = {
    {".attn.wq.", ".attn.to_q."},
    {".attn.wk.", ".attn.to_k."},
    {".attn.wv.", ".attn.to_v."},
    {".attn.wo.", ".attn.to_out.0."},
    {".attn.gate.", ".attn.to_gate."},
    {".attn.qknorm.qnorm.scale", ".attn.norm_q.weight"},
    {".attn.qknorm.knorm.scale", ".attn.norm_k.weight"},
    {".mlp.", ".ff."},
    {".prenorm.scale", ".norm1.weight"},
    {".postnorm.scale", ".norm2.weight"},
    {".mod.lin", ".scale_shift_table"},
};

std::string renamed(std::string name, std::string_view Renamed::*from,
                    std::string_view Renamed::*to) {
  for (const Renamed& beginning : kBeginnings)
    if (name.starts_with(beginning.*from)) {
      name.replace(0, (beginning.*from).size(), beginning.*to);
      break;
    }
  for (const Renamed& part : kParts)
    if (const std::size_t at = name.find(part.*from); at != name.npos)
      name.replace(at, (part.*from).size(), part.*to);
  return name;
}
std::string to_diffusers(const std::string& name) {
  return renamed(name, &Renamed::original, &Renamed::diffusers);
}
std::string to_original(const std::string& name) {
  return renamed(name, &Renamed::diffusers, &Renamed::original);
}

}  // namespace

std::optional<Krea2Names> Krea2Names::find(const Checkpoint& file) {
  for (const bool diffusers : {false, true}) {
    const auto named = [&](const char* original) {
      return diffusers ? to_diffusers(original) : std::string(original);
    };
    const auto prefix = blocks::prefix_before(file, named("txtfusion.projector.weight"));
    if (prefix && file.has(*prefix + named("first.weight")) &&
        file.has(*prefix + named("blocks.0.attn.gate.weight")))
      return Krea2Names(file, diffusers, *prefix);
  }
  return std::nullopt;
}

std::string Krea2Names::one(const std::string& original) const {
  return prefix_ + (diffusers_ ? to_diffusers(original) : original);
}

int Krea2Names::count(const std::string& list) const {
  return blocks::layer_count(file_, one(list + "."));
}

void Krea2Names::each_module(const Visit& visit) const {
  // A block's modulations are six rows in one layout and one in the other: what is made for the
  // one cannot be added to the other.
  constexpr Rename kOther[] = {[](const std::string& name) {
                                 return name.ends_with(kModulations) ? name : to_diffusers(name);
                               },
                               [](const std::string& name) {
                                 const std::string original = to_original(name);
                                 return original.ends_with(kModulations) ? name : original;
                               }};
  each_renamed_module(file_, prefix_, kOther[diffusers_ ? 1 : 0], visit);
  // SimpleTuner's files have one product for queries, keys and values.
  constexpr std::string_view kQueries = ".attn.to_q.weight";
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string tensor = file_.name(i);
    if (!tensor.starts_with(prefix_)) continue;
    const std::string here = tensor.substr(prefix_.size()),
                      name = diffusers_ ? here : to_diffusers(here);
    if (!name.ends_with(kQueries)) continue;
    const std::string at = name.substr(0, name.size() - kQueries.size());
    std::vector<Part> thirds;
    for (const char* third : {".attn.to_q.weight", ".attn.to_k.weight", ".attn.to_v.weight"})
      thirds.push_back({prefix_ + (diffusers_ ? at + third : to_original(at + third))});
    visit(at + ".attn.to_qkv", "weight", thirds);
  }
}

std::vector<std::int64_t> Krea2Names::original_shape(const std::string& original,
                                                     const std::vector<Part>& parts) const {
  if (!diffusers_ || !original.ends_with(kModulations)) return {};
  const std::string& tensor = parts.front().tensor;
  if (file_.info(tensor).rank != 2) return {};
  return {file_.size(tensor, 0) * file_.size(tensor, 1)};
}

void Krea2Names::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  const auto as_it_is = [](const std::string& name) { return name; };
  each_renamed_tensor(file_, prefix_, diffusers_ ? to_original : Rename(as_it_is), visit);
}

}  // namespace heddle::denoisers
