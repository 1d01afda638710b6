#include "ltxv_names.h"

#include <string_view>

#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

struct LtxvRenamed {
  std::string_view original, diffusers;
};
constexpr LtxvRenamed kLtxvBeginnings[] = {
    {"patchify_proj.", "proj_in."},
    {"adaln_single.", "time_embed."},
    {"audio_patchify_proj.", "audio_proj_in."},
    {"audio_adaln_single.", "audio_time_embed."},
    {"prompt_adaln_single.", "prompt_adaln."},
    {"audio_prompt_adaln_single.", "audio_prompt_adaln."},
    {"av_ca_video_scale_shift_adaln_single.", "av_cross_attn_video_scale_shift."},
    {"av_ca_audio_scale_shift_adaln_single.", "av_cross_attn_audio_scale_shift."},
    {"av_ca_a2v_gate_adaln_single.", "av_cross_attn_video_a2v_gate."},
    {"av_ca_v2a_gate_adaln_single.", "av_cross_attn_audio_v2a_gate."}};
constexpr LtxvRenamed kLtxvParts[] = {
    {".q_norm.", ".norm_q."},
    {".k_norm.", ".norm_k."},
    {".scale_shift_table_a2v_ca_video", ".video_a2v_cross_attn_scale_shift_table"},
    {".scale_shift_table_a2v_ca_audio", ".audio_a2v_cross_attn_scale_shift_table"}};
constexpr std::string_view kLtxvBlocks = "transformer_blocks.";

std::string ltxv_renamed(std::string name, std::string_view LtxvRenamed::*from,
                         std::string_view LtxvRenamed::*to) {
  for (const LtxvRenamed& beginning : kLtxvBeginnings)
    if (name.starts_with(beginning.*from))
      return name.replace(0, (beginning.*from).size(), beginning.*to);
  if (!name.starts_with(kLtxvBlocks)) return name;
  for (const LtxvRenamed& part : kLtxvParts)
    if (const std::size_t at = name.find(part.*from); at != name.npos)
      name.replace(at, (part.*from).size(), part.*to);
  return name;
}
std::string ltxv_to_diffusers(const std::string& name) {
  return ltxv_renamed(name, &LtxvRenamed::original, &LtxvRenamed::diffusers);
}
std::string ltxv_to_original(const std::string& name) {
  return ltxv_renamed(name, &LtxvRenamed::diffusers, &LtxvRenamed::original);
}

}  // namespace

std::optional<LtxvNames> LtxvNames::find(const Checkpoint& file) {
  for (const bool diffusers : {false, true}) {
    const auto named = [&](const char* original) {
      return diffusers ? ltxv_to_diffusers(original) : std::string(original);
    };
    const auto prefix =
        blocks::prefix_before(file, named("transformer_blocks.0.attn2.k_norm.weight"));
    bool is_there = prefix.has_value();
    for (const char* name :
         {"patchify_proj.weight", "adaln_single.emb.timestep_embedder.linear_1.weight",
          "adaln_single.linear.weight", "scale_shift_table", "proj_out.weight"})
      is_there = is_there && file.has(*prefix + named(name));
    if (is_there) return LtxvNames(file, diffusers, *prefix);
  }
  return std::nullopt;
}

std::string LtxvNames::one(const std::string& original) const {
  return prefix_ + (diffusers_ ? ltxv_to_diffusers(original) : original);
}

int LtxvNames::layers() const {
  return blocks::layer_count(file_, prefix_ + std::string(kLtxvBlocks));
}

void LtxvNames::each_module(const Visit& visit) const {
  each_renamed_module(file_, prefix_, diffusers_ ? ltxv_to_original : ltxv_to_diffusers, visit);
}

void LtxvNames::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  const auto as_it_is = [](const std::string& name) { return name; };
  each_renamed_tensor(file_, prefix_, diffusers_ ? ltxv_to_original : Rename(as_it_is), visit);
}

}  // namespace heddle::denoisers
