#include "minimax_names.h"

#include <string_view>

#include "model_patches.h"
#include "module_table.h"
#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

struct MinimaxRenamed {
  std::string_view original, diffusers;
};
// What a name begins with; the first that fits counts.
constexpr MinimaxRenamed kMinimaxBeginnings[] = {
    {"token_refiner.blocks.", "token_refiner.refiner_blocks."},
    {"blocks.", "transformer_blocks."},
    {"time_embedder.proj_in.", "time_embedder.linear_1."},
    {"time_embedder.proj_out.", "time_embedder.linear_2."},
    {"video_patch_proj.", "proj_in."},
    {"audio_patch_proj.", "audio_proj_in."},
    {"condition_proj.", "context_embedder."},
    {"final_layer.norm.", "norm_out.norm."},
    {"final_layer.adaln_proj.linear.", "norm_out.linear."},
    {"final_layer.video_out.", "proj_out."},
    {"final_layer.audio_out.", "audio_proj_out."},
};
// What stands in the names of blocks.
constexpr MinimaxRenamed kMinimaxParts[] = {
    {".attn.q_norm.", ".attn.norm_q."},
    {".attn.k_norm.", ".attn.norm_k."},
    {".attn.out_proj.", ".attn.to_out.0."},
    {".mlp.fc1.", ".ff.net.0.proj."},
    {".mlp.fc2.", ".ff.net.2."},
    {".attn.qkv_proj.", ".attn.to_q."},
};
constexpr std::string_view kMinimaxFused = ".attn.qkv_proj.", kMinimaxGated = ".mlp.fc1.",
                           kMinimaxSwapped = ".ff.net.0.proj.";
constexpr std::string_view kMinimaxThirds[] = {".attn.to_q.", ".attn.to_k.", ".attn.to_v."};

std::string minimax_renamed(std::string name, std::string_view MinimaxRenamed::*from,
                            std::string_view MinimaxRenamed::*to) {
  for (const MinimaxRenamed& beginning : kMinimaxBeginnings)
    if (name.starts_with(beginning.*from)) {
      name.replace(0, (beginning.*from).size(), beginning.*to);
      break;
    }
  for (const MinimaxRenamed& part : kMinimaxParts)
    if (const std::size_t at = name.find(part.*from); at != name.npos)
      name.replace(at, (part.*from).size(), part.*to);
  return name;
}
std::string minimax_to_diffusers(const std::string& name) {
  return minimax_renamed(name, &MinimaxRenamed::original, &MinimaxRenamed::diffusers);
}
std::string minimax_to_original(const std::string& name) {
  return minimax_renamed(name, &MinimaxRenamed::diffusers, &MinimaxRenamed::original);
}

bool minimax_has(std::string_view name, std::string_view part) {
  return name.find(part) != name.npos;
}
std::string minimax_replaced(std::string name, std::string_view from, std::string_view to) {
  if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  return name;
}

}  // namespace

std::optional<MinimaxNames> MinimaxNames::find(const Checkpoint& file) {
  for (const bool diffusers : {false, true}) {
    const auto named = [&](const char* original) {
      return diffusers ? minimax_to_diffusers(original) : std::string(original);
    };
    const auto prefix =
        blocks::prefix_before(file, named("token_refiner.blocks.0.attn.qkv_proj.weight"));
    bool is_there = prefix.has_value();
    for (const char* name : {"audio_patch_proj.weight", "video_patch_proj.weight",
                             "condition_proj.weight", "blocks.0.adaln_proj.linear.weight"})
      is_there = is_there && file.has(*prefix + named(name));
    if (is_there) return MinimaxNames(file, diffusers, *prefix);
  }
  return std::nullopt;
}

MinimaxNames MinimaxNames::of_patch(const Checkpoint& file, const std::string& prefix) {
  return MinimaxNames(file, file.has(prefix + "control_blocks.0.attn.to_q.weight"), prefix);
}

std::string MinimaxNames::one(const std::string& original) const {
  return prefix_ + (diffusers_ ? minimax_to_diffusers(original) : original);
}

std::vector<Part> MinimaxNames::parts(const std::string& original) const {
  const std::string tensor = one(original);
  if (!diffusers_) return {{tensor}};
  if (minimax_has(original, kMinimaxFused)) {
    std::vector<Part> thirds;
    for (const std::string_view third : kMinimaxThirds)
      thirds.push_back({minimax_replaced(tensor, kMinimaxThirds[0], third)});
    return thirds;
  }
  if (minimax_has(original, kMinimaxGated) && file_.has(tensor) && file_.info(tensor).rank > 0)
    return halves_swapped(tensor, file_.size(tensor, 0) / 2);
  return {{tensor}};
}

int MinimaxNames::count(const std::string& list) const {
  return blocks::layer_count(file_, one(list + "."));
}

void MinimaxNames::each_module(const Visit& visit) const {
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string tensor = file_.name(i);
    if (!tensor.starts_with(prefix_)) continue;
    const auto tell = [&](const std::string& name, const std::vector<Part>& parts) {
      const auto [module, kind] = named_module(name);
      visit(module, kind, parts);
    };
    const std::string here = tensor.substr(prefix_.size());
    tell(here, {{tensor}});
    const std::string other = diffusers_ ? minimax_to_original(here) : minimax_to_diffusers(here);
    const bool has_rows = here.ends_with(".weight") || here.ends_with(".bias");
    if (has_rows && minimax_has(here, kMinimaxFused)) {
      const std::int64_t rows = file_.size(tensor, 0) / 3;
      for (int third = 0; third < 3; ++third)
        tell(minimax_replaced(other, kMinimaxThirds[0], kMinimaxThirds[third]),
             {{tensor, third * rows, (third + 1) * rows}});
    } else if (has_rows &&
               (minimax_has(here, kMinimaxGated) || minimax_has(here, kMinimaxSwapped))) {
      tell(other, halves_swapped(tensor, file_.size(tensor, 0) / 2));
    } else if (other != here) {
      tell(other, diffusers_ ? parts(other) : std::vector<Part>{{tensor}});
    }
  }
}

void MinimaxNames::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string tensor = file_.name(i);
    if (!tensor.starts_with(prefix_)) continue;
    const std::string here = tensor.substr(prefix_.size());
    if (minimax_has(here, kMinimaxThirds[1]) || minimax_has(here, kMinimaxThirds[2])) continue;
    if (is_patch_tensor(here)) continue;
    const std::string original = diffusers_ ? minimax_to_original(here) : here;
    visit(original, parts(original));
  }
}

}  // namespace heddle::denoisers
