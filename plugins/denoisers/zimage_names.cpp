#include "zimage_names.h"

#include <span>

#include "model_patches.h"
#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

constexpr std::string_view kFused = "attention.qkv";
constexpr const char* kThirds[] = {"attention.to_q", "attention.to_k", "attention.to_v"};
constexpr const char* kLuminaThirds[] = {"attn.to_q", "attn.to_k", "attn.to_v"};

struct ZImageRenamed {
  std::string_view original, diffusers;
};
constexpr ZImageRenamed kRenamed[] = {
    {"attention.out", "attention.to_out.0"},  {"attention.q_norm", "attention.norm_q"},
    {"attention.k_norm", "attention.norm_k"}, {"x_embedder", "all_x_embedder.2-1"},
    {"final_layer.", "all_final_layer.2-1."},
};
// The first that stands in a name counts before those behind it.
constexpr ZImageRenamed kLuminaRenamed[] = {
    {"attention.out", "attn.to_out.0"},
    {"attention.q_norm", "attn.norm_q"},
    {"attention.k_norm", "attn.norm_k"},
    {"t_embedder.mlp.0", "time_caption_embed.timestep_embedder.linear_1"},
    {"t_embedder.mlp.2", "time_caption_embed.timestep_embedder.linear_2"},
    {"cap_embedder", "time_caption_embed.caption_embedder"},
    {"final_layer.adaLN_modulation.1", "norm_out.linear_1"},
    {"final_layer.linear", "norm_out.linear_2"},
    {"feed_forward.w", "feed_forward.linear_"},
    {".adaLN_modulation.1.", ".norm1.linear."},
    {".attention_norm1.", ".norm1.norm."},  // of layers that are modulated; of others ".norm1."
    {".attention_norm2.", ".norm2."},
};
constexpr ZImageRenamed kLuminaUnmodulated{".attention_norm1.", ".norm1."};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
  return text;
}

std::string to_diffusers(std::string name, bool is_lumina) {
  if (is_lumina && name.starts_with("context_refiner."))
    name = replaced(name, kLuminaUnmodulated.original, kLuminaUnmodulated.diffusers);
  for (const ZImageRenamed& renamed :
       is_lumina ? std::span<const ZImageRenamed>(kLuminaRenamed) : kRenamed)
    name = replaced(name, renamed.original, renamed.diffusers);
  return name;
}
std::string to_original(std::string name, bool is_lumina) {
  for (const ZImageRenamed& renamed :
       is_lumina ? std::span<const ZImageRenamed>(kLuminaRenamed) : kRenamed)
    name = replaced(name, renamed.diffusers, renamed.original);
  if (is_lumina) name = replaced(name, kLuminaUnmodulated.diffusers, kLuminaUnmodulated.original);
  return name;
}

}  // namespace

std::optional<ZImageNames> ZImageNames::find(const Checkpoint& file) {
  if (const auto prefix = blocks::prefix_before(
          file, std::string("context_refiner.0.") + kLuminaThirds[0] + ".weight"))
    if (file.has(*prefix + "time_caption_embed.caption_embedder.1.weight"))
      return ZImageNames(file, true, *prefix);
  for (const bool diffusers : {false, true}) {
    const std::string queries = diffusers ? kThirds[0] : std::string(kFused);
    const auto prefix = blocks::prefix_before(file, "context_refiner.0." + queries + ".weight");
    if (prefix && file.has(*prefix + "cap_embedder.1.weight") &&
        file.has(*prefix + "context_refiner.0.ffn_norm1.weight"))
      return ZImageNames(file, diffusers, *prefix);
  }
  return std::nullopt;
}

ZImageNames ZImageNames::of_patch(const Checkpoint& file, const std::string& prefix) {
  return ZImageNames(
      file, !file.has(prefix + "control_layers.0." + std::string(kFused) + ".weight"), prefix);
}

bool ZImageNames::is_lumina() const {
  return file_.has(prefix_ + "layers.0.adaLN_modulation.1.weight") ||
         file_.has(prefix_ + "layers.0.norm1.linear.weight");
}

std::vector<Part> ZImageNames::parts(const std::string& original) const {
  if (!diffusers_) return {{prefix_ + original}};
  if (original.find(kFused) == original.npos)
    return {{prefix_ + to_diffusers(original, is_lumina())}};
  std::vector<Part> thirds;
  for (const char* third : is_lumina() ? kLuminaThirds : kThirds) {
    const std::string tensor = prefix_ + replaced(original, kFused, third);
    // Lumina 2 has fewer keys and values than queries. A scale of a whole matrix has no rows.
    const bool is_told = is_lumina() && file_.has(tensor) && file_.info(tensor).rank > 0;
    thirds.push_back({tensor, 0, is_told ? file_.size(tensor, 0) : -1});
  }
  return thirds;
}

int ZImageNames::count(const std::string& list) const {
  return blocks::layer_count(file_, prefix_ + list + ".");
}

void ZImageNames::each_module(const Visit& visit) const {
  const auto tell = [&](const std::string& name, const std::vector<Part>& parts) {
    const auto [module, kind] = named_module(name);
    visit(module, kind, parts);
  };
  const bool lumina = is_lumina();
  const auto& thirds = lumina ? kLuminaThirds : kThirds;
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string tensor = file_.name(i);
    if (!tensor.starts_with(prefix_)) continue;
    const std::string here = tensor.substr(prefix_.size());
    tell(here, {{tensor}});
    const bool is_fused = here.ends_with(std::string(kFused) + ".weight");
    if (is_fused) {
      const std::vector<std::int64_t> ends = ends_of_thirds(tensor);
      for (std::size_t third = 0; third < ends.size(); ++third)
        tell(replaced(here, kFused, thirds[third]),
             {{tensor, third == 0 ? 0 : ends[third - 1], ends[third]}});
    } else if (here.find(thirds[0]) != here.npos) {  // of three the first stands for all
      const std::string fused = replaced(here, thirds[0], kFused);
      tell(fused, parts(fused));
    } else {
      const std::string other = diffusers_ ? to_original(here, lumina) : to_diffusers(here, lumina);
      if (other != here) tell(other, {{tensor}});
    }
  }
}

// Where queries, keys and values end in the rows of a fused matrix.
std::vector<std::int64_t> ZImageNames::ends_of_thirds(const std::string& tensor) const {
  const std::int64_t rows = file_.size(tensor, 0);
  const std::string out = replaced(tensor, kFused, "attention.out");
  // Lumina 2 has fewer keys and values than queries.
  const std::int64_t queries = is_lumina() && file_.has(out) ? file_.size(out, 1) : rows / 3;
  return {queries, queries + (rows - queries) / 2, rows};
}

void ZImageNames::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string tensor = file_.name(i);
    if (!tensor.starts_with(prefix_)) continue;
    const std::string name = tensor.substr(prefix_.size());
    const auto& thirds = is_lumina() ? kLuminaThirds : kThirds;
    if (name.find(thirds[1]) != name.npos || name.find(thirds[2]) != name.npos) continue;
    if (is_patch_tensor(name)) continue;
    const std::string original = to_original(replaced(name, thirds[0], kFused), is_lumina());
    visit(original, parts(original));
  }
}

}  // namespace heddle::denoisers
