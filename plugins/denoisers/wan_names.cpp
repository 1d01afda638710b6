#include "wan_names.h"

#include <string_view>

#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

struct WanRenamed {
  std::string_view original, diffusers;
};
// What a name begins with; the first that fits counts.
constexpr WanRenamed kWanBeginnings[] = {
    {"text_embedding.0.", "condition_embedder.text_embedder.linear_1."},
    {"text_embedding.2.", "condition_embedder.text_embedder.linear_2."},
    {"time_embedding.0.", "condition_embedder.time_embedder.linear_1."},
    {"time_embedding.2.", "condition_embedder.time_embedder.linear_2."},
    {"time_projection.1.", "condition_embedder.time_proj."},
    {"img_emb.proj.0.", "condition_embedder.image_embedder.norm1."},
    {"img_emb.proj.1.", "condition_embedder.image_embedder.ff.net.0.proj."},
    {"img_emb.proj.3.", "condition_embedder.image_embedder.ff.net.2."},
    {"img_emb.proj.4.", "condition_embedder.image_embedder.norm2."},
    {"img_emb.emb_pos", "condition_embedder.image_embedder.pos_embed"},
    {"head.head.", "proj_out."},
    {"head.modulation", "scale_shift_table"},
};
// What stands in the names of blocks.
constexpr WanRenamed kWanParts[] = {
    {".self_attn.", ".attn1."},
    {".cross_attn.", ".attn2."},
    {".q.", ".to_q."},
    {".k.", ".to_k."},
    {".v.", ".to_v."},
    {".o.", ".to_out.0."},
    {".k_img.", ".add_k_proj."},
    {".v_img.", ".add_v_proj."},
    {".norm_k_img.", ".norm_added_k."},
    {".norm3.", ".norm2."},
    {".ffn.0.", ".ffn.net.0.proj."},
    {".ffn.2.", ".ffn.net.2."},
    {".modulation", ".scale_shift_table"},
    {".before_proj.", ".proj_in."},
    {".after_proj.", ".proj_out."},
};
constexpr std::string_view kBlocks = "blocks.", kVaceBlocks = "vace_blocks.";

std::string wan_renamed(std::string name, std::string_view WanRenamed::*from,
                        std::string_view WanRenamed::*to) {
  if (!name.starts_with(kBlocks) && !name.starts_with(kVaceBlocks)) {
    for (const WanRenamed& beginning : kWanBeginnings)
      if (name.starts_with(beginning.*from))
        return name.replace(0, (beginning.*from).size(), beginning.*to);
    return name;
  }
  for (const WanRenamed& part : kWanParts)
    if (const std::size_t at = name.find(part.*from); at != name.npos)
      name.replace(at, (part.*from).size(), part.*to);
  return name;
}
std::string to_diffusers(const std::string& name) {
  return wan_renamed(name, &WanRenamed::original, &WanRenamed::diffusers);
}
std::string to_original(const std::string& name) {
  return wan_renamed(name, &WanRenamed::diffusers, &WanRenamed::original);
}

}  // namespace

std::optional<WanNames> WanNames::find(const Checkpoint& file) {
  for (const bool diffusers : {false, true}) {
    const auto named = [&](const char* original) {
      return diffusers ? to_diffusers(original) : std::string(original);
    };
    const auto prefix = blocks::prefix_before(file, named("blocks.0.cross_attn.norm_k.weight"));
    bool is_there = prefix.has_value();
    for (const char* name :
         {"head.modulation", "head.head.weight", "time_projection.1.weight",
          "text_embedding.0.weight", "patch_embedding.weight", "blocks.0.modulation"})
      is_there = is_there && file.has(*prefix + named(name));
    if (is_there) return WanNames(file, diffusers, *prefix);
  }
  return std::nullopt;
}

std::string WanNames::one(const std::string& original) const {
  return prefix_ + (diffusers_ ? to_diffusers(original) : original);
}

int WanNames::layers() const { return blocks::layer_count(file_, prefix_ + std::string(kBlocks)); }
int WanNames::vace_layers() const {
  return blocks::layer_count(file_, prefix_ + std::string(kVaceBlocks));
}

void WanNames::each_module(const Visit& visit) const {
  each_renamed_module(file_, prefix_, diffusers_ ? to_original : to_diffusers, visit);
}

void WanNames::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  const auto as_it_is = [](const std::string& name) { return name; };
  each_renamed_tensor(file_, prefix_, diffusers_ ? to_original : Rename(as_it_is), visit);
}

}  // namespace heddle::denoisers
