#include "hunyuan_names.h"

#include <algorithm>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

constexpr std::string_view kHunyuanFinal = "final_layer.adaLN_modulation.1";

constexpr Module kHunyuanTop[] = {
    {"img_in.proj", {"x_embedder.proj"}},
    {"time_in.in_layer", {"time_text_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_text_embed.timestep_embedder.linear_2"}},
    {"time_r_in.in_layer", {"time_text_embed.timestep_embedder_r.linear_1"}},
    {"time_r_in.out_layer", {"time_text_embed.timestep_embedder_r.linear_2"}},
    {"vector_in.in_layer", {"time_text_embed.text_embedder.linear_1"}},
    {"vector_in.out_layer", {"time_text_embed.text_embedder.linear_2"}},
    {"guidance_in.in_layer", {"time_text_embed.guidance_embedder.linear_1"}},
    {"guidance_in.out_layer", {"time_text_embed.guidance_embedder.linear_2"}},
    {"txt_in.input_embedder", {"context_embedder.proj_in"}},
    {"txt_in.t_embedder.in_layer", {"context_embedder.time_text_embed.timestep_embedder.linear_1"}},
    {"txt_in.t_embedder.out_layer",
     {"context_embedder.time_text_embed.timestep_embedder.linear_2"}},
    {"txt_in.c_embedder.in_layer", {"context_embedder.time_text_embed.text_embedder.linear_1"}},
    {"txt_in.c_embedder.out_layer", {"context_embedder.time_text_embed.text_embedder.linear_2"}},
    {"byt5_in.layernorm", {"context_embedder_2.norm"}},
    {"byt5_in.fc1", {"context_embedder_2.linear_1"}},
    {"byt5_in.fc2", {"context_embedder_2.linear_2"}},
    {"byt5_in.fc3", {"context_embedder_2.linear_3"}},
    {"vision_in.proj.0", {"image_embedder.norm_in"}},
    {"vision_in.proj.1", {"image_embedder.linear_1"}},
    {"vision_in.proj.3", {"image_embedder.linear_2"}},
    {"vision_in.proj.4", {"image_embedder.norm_out"}},
    {"cond_type_embedding", {"cond_type_embed"}},
    {kHunyuanFinal, {"norm_out.linear"}},
    {"final_layer.linear", {"proj_out"}},
};
constexpr Module kHunyuanRefiner[] = {
    {"norm1", {"norm1"}},
    {"self_attn.qkv", {"attn.to_q", "attn.to_k", "attn.to_v"}, "attn.to_qkv"},
    {"self_attn.proj", {"attn.to_out.0"}},
    {"norm2", {"norm2"}},
    {"mlp.0", {"ff.net.0.proj"}},
    {"mlp.2", {"ff.net.2"}},
    {"adaLN_modulation.1", {"norm_out.linear"}},
};
constexpr Module kHunyuanDouble[] = {
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
constexpr Module kHunyuanSingle[] = {
    {"modulation.lin", {"norm.linear"}},
    {"linear1.qkv", {"attn.to_q", "attn.to_k", "attn.to_v"}, "attn.to_qkv"},
    {"linear1.mlp", {"proj_mlp"}},
    {"norm.query_norm", {"attn.norm_q"}},
    {"norm.key_norm", {"attn.norm_k"}},
    {"linear2", {"proj_out"}},
};

// How the publisher calls what ComfyUI's name has.
struct Spelling {
  std::string_view here, there;
};
constexpr Spelling kPublisher[] = {
    {"c_embedder.in_layer", "c_embedder.linear_1"},
    {"c_embedder.out_layer", "c_embedder.linear_2"},
    {"in_layer", "mlp.0"},
    {"out_layer", "mlp.2"},
    {"mod.lin", "mod.linear"},
    {"modulation.lin", "modulation.linear"},
    {"_attn.qkv", "_attn_qkv"},
    {"_attn.norm.query_norm", "_attn_q_norm"},
    {"_attn.norm.key_norm", "_attn_k_norm"},
    {"_attn.proj", "_attn_proj"},
    {"norm.query_norm", "q_norm"},
    {"norm.key_norm", "k_norm"},
    {"mlp.0", "mlp.fc1"},
    {"mlp.2", "mlp.fc2"},
};
std::string by_publisher(std::string module) {
  for (const Spelling& s : kPublisher)
    if (const std::size_t at = module.find(s.here);
        at != module.npos && at + s.here.size() == module.size())
      return module.replace(at, s.here.size(), s.there);
  return module;
}

constexpr std::string_view kFusedOfSingle = "linear1.", kQkv = "qkv";
constexpr std::string_view kTimeText = "time_text_embed.", kTime = "time_embed.";

bool is_head_norm(std::string_view module) {
  return module.ends_with("query_norm") || module.ends_with("key_norm");
}

}  // namespace

std::optional<HunyuanNames> HunyuanNames::find(const Checkpoint& file) {
  const auto prefix =
      blocks::prefix_before(file, "txt_in.individual_token_refiner.blocks.0.norm1.weight");
  const auto other =
      blocks::prefix_before(file, "context_embedder.token_refiner.refiner_blocks.0.norm1.weight");
  for (const auto& [found, diffusers] : {std::pair(prefix, false), std::pair(other, true)}) {
    if (!found) continue;
    const HunyuanNames names(file, diffusers, *found);
    const std::string first = names.top("img_in.proj", "weight").front().tensor;
    if (file.has(first) && file.info(first).rank == 5 && names.has_top("final_layer.linear") &&
        (names.has_top("cond_type_embedding") || names.has_top("vector_in.in_layer")))
      return names;
  }
  return std::nullopt;
}

HunyuanNames::Scope HunyuanNames::top_scope() { return {"", "", kHunyuanTop}; }
HunyuanNames::Scope HunyuanNames::refiner_scope(int index) {
  const std::string i = std::to_string(index) + ".";
  return {"txt_in.individual_token_refiner.blocks." + i,
          "context_embedder.token_refiner.refiner_blocks." + i, kHunyuanRefiner};
}
HunyuanNames::Scope HunyuanNames::double_scope(int index) {
  const std::string i = std::to_string(index) + ".";
  return {"double_blocks." + i, "transformer_blocks." + i, kHunyuanDouble};
}
HunyuanNames::Scope HunyuanNames::single_scope(int index) {
  const std::string i = std::to_string(index) + ".";
  return {"single_blocks." + i, "single_transformer_blocks." + i, kHunyuanSingle};
}

std::vector<HunyuanNames::Scope> HunyuanNames::scopes() const {
  std::vector<Scope> all{top_scope()};
  for (int i = 0; i < refiners(); ++i) all.push_back(refiner_scope(i));
  for (int i = 0; i < doubles(); ++i) all.push_back(double_scope(i));
  for (int i = 0; i < singles(); ++i) all.push_back(single_scope(i));
  return all;
}

int HunyuanNames::refiners() const {
  return blocks::layer_count(
      file_, prefix_ + (diffusers_ ? "context_embedder.token_refiner.refiner_blocks."
                                   : "txt_in.individual_token_refiner.blocks."));
}
std::string HunyuanNames::double_prefix() const {
  return prefix_ + (diffusers_ ? "transformer_blocks." : "double_blocks.");
}
int HunyuanNames::doubles() const { return blocks::layer_count(file_, double_prefix()); }
int HunyuanNames::singles() const {
  return blocks::layer_count(
      file_, prefix_ + (diffusers_ ? "single_transformer_blocks." : "single_blocks."));
}

std::vector<Part> HunyuanNames::top(std::string_view module, const char* kind) const {
  return in(top_scope(), module, kind);
}
std::vector<Part> HunyuanNames::in_refiner(int index, std::string_view module,
                                           const char* kind) const {
  return in(refiner_scope(index), module, kind);
}
std::vector<Part> HunyuanNames::in_double(int index, std::string_view module,
                                          const char* kind) const {
  return in(double_scope(index), module, kind);
}
std::vector<Part> HunyuanNames::in_single(int index, std::string_view module,
                                          const char* kind) const {
  return in(single_scope(index), module, kind);
}

// 1.5 has no text in the embedding of the timestep, and another name for it.
std::string HunyuanNames::in_diffusers(const Scope& scope, const char* part) const {
  std::string name = part;
  const std::string mark = diffusers_ ? std::string(kTime) + "timestep_embedder.linear_1.weight"
                                      : "cond_type_embedding.weight";
  if (name.starts_with(kTimeText) && file_.has(prefix_ + mark))
    name.replace(0, kTimeText.size(), kTime);
  return scope.diffusers + name;
}

std::vector<Part> HunyuanNames::in(const Scope& scope, std::string_view module,
                                   const char* kind) const {
  if (!diffusers_) return original_parts(prefix_ + scope.original, std::string(module), kind);
  const Module& found = look_up(scope.table, module);
  const std::string tail = std::string(".") + kind;
  if (scope.diffusers.empty()) {
    const std::string tensor = prefix_ + in_diffusers(scope, found.parts[0]) + tail;
    // diffusers has the halves the other way round.
    if (module == kHunyuanFinal && file_.has(tensor))
      return halves_swapped(tensor, file_.size(tensor, 0) / 2);
    return {{tensor}};
  }
  return diffusers_parts(file_, prefix_ + scope.diffusers, found, kind);
}

// The first spelling that the file has.
std::vector<Part> HunyuanNames::original_parts(const std::string& at, const std::string& module,
                                               const char* kind) const {
  const std::string tail = std::string(".") + kind;
  if (module.starts_with(kFusedOfSingle)) {
    const std::string fused = at + "linear1" + tail;
    const std::string down = at + "linear2.weight";
    const std::int64_t width = file_.has(down) ? file_.size(down, 0) : 0,
                       all = file_.has(fused) ? file_.size(fused, 0) : 0;
    return module.ends_with(kQkv) ? std::vector<Part>{{fused, 0, 3 * width}}
                                  : std::vector<Part>{{fused, 3 * width, all}};
  }
  std::vector<std::vector<Part>> spellings{{{at + module + tail}}};
  if (is_head_norm(module)) spellings.push_back({{at + module + ".scale"}});
  const std::string there = by_publisher(module);
  spellings.push_back({{at + there + tail}});
  if (there.ends_with(kQkv)) {
    const std::string stem = at + there.substr(0, there.size() - kQkv.size());
    spellings.push_back({{stem + "q" + tail}, {stem + "k" + tail}, {stem + "v" + tail}});
  }
  for (const std::vector<Part>& parts : spellings)
    if (is_there(parts)) return parts;
  return spellings.front();
}

bool HunyuanNames::is_there(const std::vector<Part>& parts) const {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return file_.has(part.tensor); });
}

std::int64_t HunyuanNames::rows_of(const std::vector<Part>& parts) const {
  std::int64_t count = 0;
  for (const Part& part : parts)
    count += (part.end < 0 ? file_.size(part.tensor, 0) : part.end) - part.begin;
  return count;
}

// Rows [begin, end) of the parts one after another.
std::vector<Part> HunyuanNames::rows(const std::vector<Part>& parts, std::int64_t begin,
                                     std::int64_t end) const {
  std::vector<Part> found;
  std::int64_t at = 0;  // the part's first row among all
  for (const Part& part : parts) {
    const std::int64_t size = rows_of({part});
    const std::int64_t first = std::max(begin, at), last = std::min(end, at + size);
    if (first < last)
      found.push_back({part.tensor, part.begin + first - at, part.begin + last - at});
    at += size;
  }
  return found;
}

void HunyuanNames::each_module(const Visit& visit) const {
  for (const Scope& scope : scopes())
    for (const Module& module : scope.table)
      for (const char* kind : {"weight", "bias"}) {
        const std::vector<Part> parts = in(scope, module.original, kind);
        if ((is_head_norm(module.original) && kind == std::string_view("bias")) || !is_there(parts))
          continue;
        const std::string name(module.original), there = by_publisher(name);
        const std::int64_t all = rows_of(parts);
        // "linear1.qkv" is a name of ours.
        const bool is_ours = name.starts_with(kFusedOfSingle);
        if (!is_ours) visit(scope.original + name, kind, parts);
        if (!is_ours && there != name) visit(scope.original + there, kind, parts);
        const std::int64_t count = module.parts[1] == nullptr ? 1 : 3;
        for (std::int64_t i = 0; i < count; ++i) {
          std::vector<Part> part = rows(parts, all * i / count, all * (i + 1) / count);
          if (count == 3 && !is_ours)
            visit(scope.original + there.substr(0, there.size() - kQkv.size()) + "qkv"[i], kind,
                  part);
          if (name == kHunyuanFinal) {
            part = rows(parts, all / 2, all);
            const std::vector<Part> first = rows(parts, 0, all / 2);
            part.insert(part.end(), first.begin(), first.end());
          }
          visit(in_diffusers(scope, module.parts[i]), kind, part);
        }
      }
  for (int i = 0; i < singles(); ++i)
    for (const char* kind : {"weight", "bias"}) {
      std::vector<Part> fused = in_single(i, "linear1.qkv", kind);
      const std::vector<Part> rest = in_single(i, "linear1.mlp", kind);
      fused.insert(fused.end(), rest.begin(), rest.end());
      if (is_there(fused)) visit(single_scope(i).original + "linear1", kind, fused);
    }
}

void HunyuanNames::each_original(
    const std::function<void(const std::string&, const std::vector<Part>&)>& visit) const {
  const std::vector<Scope> all = scopes();
  each_module([&](const std::string& module, const char* kind, const std::vector<Part>& parts) {
    for (const Scope& scope : all) {
      if (!module.starts_with(scope.original)) continue;
      const std::string inside = module.substr(scope.original.size());
      for (const Module& known : scope.table)
        if (known.original == inside) return visit(module + "." + kind, parts);
      if (inside == "linear1") return visit(module + "." + kind, parts);
    }
  });
}

}  // namespace heddle::denoisers
