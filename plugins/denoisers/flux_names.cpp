#include "flux_names.h"

#include <algorithm>
#include <span>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

constexpr std::string_view kFinalModulation = "final_layer.adaLN_modulation.1";

constexpr Module kTop[] = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"time_in.in_layer", {"time_text_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_text_embed.timestep_embedder.linear_2"}},
    {"vector_in.in_layer", {"time_text_embed.text_embedder.linear_1"}},
    {"vector_in.out_layer", {"time_text_embed.text_embedder.linear_2"}},
    {"guidance_in.in_layer", {"time_text_embed.guidance_embedder.linear_1"}},
    {"guidance_in.out_layer", {"time_text_embed.guidance_embedder.linear_2"}},
    {kFinalModulation, {"norm_out.linear"}},
    {"final_layer.linear", {"proj_out"}},
};
// Modulations are first in both tables.
constexpr std::size_t kModulationsOfDouble = 2, kModulationsOfSingle = 1;
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

constexpr FluxModules kFirst{kTop, kDouble, kSingle, nullptr};

constexpr Module kSecondTop[] = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"time_in.in_layer", {"time_guidance_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_guidance_embed.timestep_embedder.linear_2"}},
    {"guidance_in.in_layer", {"time_guidance_embed.guidance_embedder.linear_1"}},
    {"guidance_in.out_layer", {"time_guidance_embed.guidance_embedder.linear_2"}},
    {"double_stream_modulation_img.lin", {"double_stream_modulation_img.linear"}},
    {"double_stream_modulation_txt.lin", {"double_stream_modulation_txt.linear"}},
    {"single_stream_modulation.lin", {"single_stream_modulation.linear"}},
    {kFinalModulation, {"norm_out.linear"}},
    {"final_layer.linear", {"proj_out"}},
};
constexpr Module kSecondDouble[] = {
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
    {"img_mlp.0", {"ff.linear_in"}},
    {"img_mlp.2", {"ff.linear_out"}},
    {"txt_mlp.0", {"ff_context.linear_in"}},
    {"txt_mlp.2", {"ff_context.linear_out"}},
};
constexpr const char* kSecondFused = "attn.to_qkv_mlp_proj";
constexpr Module kSecondSingle[] = {
    {"linear1", {kSecondFused}},
    {"norm.query_norm", {"attn.norm_q"}},
    {"norm.key_norm", {"attn.norm_k"}},
    {"linear2", {"attn.to_out"}},
};
constexpr FluxModules kSecond{kSecondTop, kSecondDouble, kSecondSingle, kSecondFused};

// FLUX.1's blocks, with modulations that one network makes for all of them.
constexpr std::string_view kApproximator = "distilled_guidance_layer.";
constexpr Module kChromaTop[] = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"distilled_guidance_layer.in_proj", {"distilled_guidance_layer.in_proj"}},
    {"distilled_guidance_layer.out_proj", {"distilled_guidance_layer.out_proj"}},
    {"final_layer.linear", {"proj_out"}},
    // Of Radiance.
    {"img_in_patch", {"img_in_patch"}},
    {"nerf_image_embedder.embedder.0", {"nerf_image_embedder.embedder.0"}},
    {"nerf_final_layer_conv.conv", {"nerf_final_layer_conv.conv"}},
    {"nerf_final_layer.linear", {"nerf_final_layer.linear"}},
};
constexpr std::string_view kNetworks = "nerf_blocks.";
constexpr Module kInNetwork[] = {{"param_generator", {"param_generator"}}};
// Norms outside of networks, and tensors without elements that mark how a file was trained.
constexpr const char* kOthersOfRadiance[] = {
    "nerf_final_layer_conv.norm.scale", "nerf_final_layer.norm.scale", "__x0__", "__sequential__"};
constexpr Module kInApproximator[] = {{"in_layer", {"linear_1"}}, {"out_layer", {"linear_2"}}};
constexpr FluxModules kChroma{kChromaTop, std::span(kDouble).subspan(kModulationsOfDouble),
                              std::span(kSingle).subspan(kModulationsOfSingle), nullptr};

// The original layout calls the weight of an RMS norm its scale.
std::string original_name(const std::string& at, std::string_view module, const char* kind) {
  const bool norm = module.ends_with("_norm");
  return at + std::string(module) + "." + (norm ? "scale" : kind);
}

std::vector<Part> joined(std::vector<Part> first, const std::vector<Part>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::optional<FluxNames> FluxNames::find(const Checkpoint& file) {
  if (const auto prefix =
          blocks::prefix_before(file, "double_blocks.0.img_attn.norm.key_norm.scale"))
    if (file.has(*prefix + "img_in.weight") && file.has(*prefix + "vector_in.in_layer.weight"))
      return FluxNames(file, kFirst, FluxLayout::original, *prefix);
  if (const auto prefix =
          blocks::prefix_before(file, "transformer_blocks.0.attn.norm_added_k.weight"))
    if (file.has(*prefix + "x_embedder.weight") &&
        file.has(*prefix + "time_text_embed.text_embedder.linear_1.weight") &&
        file.has(*prefix + "single_transformer_blocks.0.proj_mlp.weight"))
      return FluxNames(file, kFirst, FluxLayout::diffusers, *prefix);
  return std::nullopt;
}

std::optional<FluxNames> FluxNames::find_original_control(const Checkpoint& file) {
  std::optional<FluxNames> names = find(file);
  for (const char* name : {"pos_embed_input.weight", "input_hint_block.0.weight"})
    if (!names || !file.has(names->prefix() + name)) return std::nullopt;
  return names;
}

std::optional<FluxNames> FluxNames::find_control(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "transformer_blocks.0.attn.norm_added_k.weight");
  for (const char* name : {"x_embedder.weight", "controlnet_x_embedder.weight",
                           "time_text_embed.text_embedder.linear_1.weight"})
    if (!prefix || !file.has(*prefix + name)) return find_original_control(file);
  return FluxNames(file, kFirst, FluxLayout::diffusers, *prefix);
}

std::optional<FluxNames> FluxNames::find_second(const Checkpoint& file) {
  if (const auto prefix = blocks::prefix_before(file, "double_stream_modulation_img.lin.weight"))
    if (file.has(*prefix + "img_in.weight") && file.has(*prefix + "single_blocks.0.linear1.weight"))
      return FluxNames(file, kSecond, FluxLayout::original, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "double_stream_modulation_img.linear.weight"))
    if (file.has(*prefix + "x_embedder.weight") &&
        file.has(*prefix + "single_transformer_blocks.0." + kSecondFused + ".weight"))
      return FluxNames(file, kSecond, FluxLayout::diffusers, *prefix);
  return std::nullopt;
}

std::optional<FluxNames> FluxNames::find_chroma(const Checkpoint& file) {
  if (const auto prefix = blocks::prefix_before(file, "distilled_guidance_layer.norms.0.scale"))
    if (file.has(*prefix + "double_blocks.0.img_attn.norm.key_norm.scale"))
      return FluxNames(file, kChroma, FluxLayout::original, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "distilled_guidance_layer.norms.0.weight"))
    if (file.has(*prefix + "x_embedder.weight") &&
        file.has(*prefix + "single_transformer_blocks.0.proj_mlp.weight"))
      return FluxNames(file, kChroma, FluxLayout::diffusers, *prefix);
  return std::nullopt;
}

std::string FluxNames::double_prefix() const {
  return prefix_ + (layout_ == FluxLayout::original ? "double_blocks." : "transformer_blocks.");
}
std::string FluxNames::single_prefix() const {
  return prefix_ +
         (layout_ == FluxLayout::original ? "single_blocks." : "single_transformer_blocks.");
}

std::int64_t FluxNames::row_count(const std::vector<Part>& parts) const {
  std::int64_t count = 0;
  for (const Part& part : parts)
    count += (part.end < 0 ? file_.size(part.tensor, 0) : part.end) - part.begin;
  return count;
}

// Rows [begin, end) of the parts one after another.
std::vector<Part> FluxNames::rows(const std::vector<Part>& parts, std::int64_t begin,
                                  std::int64_t end) const {
  std::vector<Part> found;
  std::int64_t at = 0;  // the part's first row among all
  for (const Part& part : parts) {
    const std::int64_t size = row_count({part});
    const std::int64_t first = std::max(begin, at), last = std::min(end, at + size);
    if (first < last)
      found.push_back({part.tensor, part.begin + first - at, part.begin + last - at});
    at += size;
  }
  return found;
}

bool FluxNames::is_there(const std::vector<Part>& parts) const {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return file_.has(part.tensor); });
}

struct ProcessorModule {
  const char *module, *name;
};
// How files call modules that replace an attention's processor, as USO's and XLabs' do; ComfyUI's
// names of their conversions are among them.
constexpr ProcessorModule kInProcessors[] = {{"img_attn.qkv", "qkv_lora1"},
                                             {"img_attn.proj", "proj_lora1"},
                                             {"txt_attn.qkv", "qkv_lora2"},
                                             {"txt_attn.proj", "proj_lora2"}};
constexpr ProcessorModule kInSingleProcessors[] = {
    {"linear1.qkv", "qkv"}, {"linear1.qkv", "linear1_qkv"}, {"linear2", "proj"}};

void FluxNames::each_module(const Visit& visit) const {
  using Find = std::function<std::vector<Part>(std::string_view module, const char* kind)>;
  const auto each_of = [&](std::span<const Module> table, const std::string& original,
                           const std::string& diffusers, const Find& find) {
    for (const Module& module : table)
      for (const char* kind : {"weight", "bias"}) {
        const bool is_norm = module.original.ends_with("_norm");  // has no bias
        const std::vector<Part> parts = find(module.original, kind);
        if ((is_norm && kind == std::string_view("bias")) || !is_there(parts)) continue;
        // "linear1.qkv" is a name of ours.
        const std::string name = original + std::string(module.original);
        if (!module.original.starts_with("linear1.") && name != diffusers + module.parts[0])
          visit(name, kind, parts);
        if (is_norm) visit(name + ".scale", kind, parts);
        if (module.fused != nullptr) visit(diffusers + module.fused, kind, parts);
        const std::int64_t names = module.parts[1] == nullptr ? 1 : 3, all = row_count(parts);
        for (std::int64_t i = 0; i < names; ++i) {
          std::vector<Part> part = rows(parts, all * i / names, all * (i + 1) / names);
          // diffusers has the halves the other way round.
          if (module.original == kFinalModulation)
            part = joined(rows(parts, all / 2, all), rows(parts, 0, all / 2));
          visit(diffusers + module.parts[i], kind, part);
        }
      }
  };
  each_of(modules_->top, "", "", [&](auto module, auto kind) { return top(module, kind); });
  for (int i = 0; i < blocks::layer_count(file_, double_prefix()); ++i) {
    const std::string original = "double_blocks." + std::to_string(i) + ".";
    each_of(modules_->in_double, original, "transformer_blocks." + std::to_string(i) + ".",
            [&](auto module, auto kind) { return in_double(i, module, kind); });
    for (const ProcessorModule& one : kInProcessors)
      if (const std::vector<Part> parts = in_double(i, one.module, "weight"); is_there(parts))
        visit(original + one.name, "weight", parts);
  }
  for (int i = 0; i < blocks::layer_count(file_, single_prefix()); ++i) {
    const std::string original = "single_blocks." + std::to_string(i) + ".";
    each_of(modules_->in_single, original, "single_transformer_blocks." + std::to_string(i) + ".",
            [&](auto module, auto kind) { return in_single(i, module, kind); });
    if (modules_->fused_in_diffusers != nullptr) continue;  // linear1 is in the table
    for (const ProcessorModule& one : kInSingleProcessors)
      if (const std::vector<Part> parts = in_single(i, one.module, "weight"); is_there(parts))
        visit(original + one.name, "weight", parts);
    for (const char* kind : {"weight", "bias"}) {
      const std::vector<Part> fused =
          joined(in_single(i, "linear1.qkv", kind), in_single(i, "linear1.mlp", kind));
      if (is_there(fused)) visit(original + "linear1", kind, fused);
    }
  }
  for (int i = 0; i < approximator_depth(); ++i) {
    const std::string at = std::string(kApproximator) + "layers." + std::to_string(i) + ".";
    each_of(kInApproximator, at, at,
            [&](auto module, auto kind) { return in_approximator(i, module, kind); });
    if (const std::vector<Part> norm = in_approximator(i, "norm", "weight"); is_there(norm))
      visit(std::string(kApproximator) + "norms." + std::to_string(i) + ".scale", "weight", norm);
  }
  for (int i = 0; i < network_depth(); ++i) {
    const std::string at = std::string(kNetworks) + std::to_string(i) + ".";
    each_of(kInNetwork, at, at, [&](auto, auto kind) { return in_network(i, kind); });
  }
}

void FluxNames::each_original(const VisitTensor& visit) const {
  const auto give = [&](const std::string& name, const std::vector<Part>& parts) {
    if (is_there(parts)) visit(name, parts);
  };
  for (const char* kind : {"weight", "bias"}) {
    for (const Module& module : modules_->top)
      give(original_name("", module.original, kind), top(module.original, kind));
    for (int i = 0; i < blocks::layer_count(file_, double_prefix()); ++i)
      for (const Module& module : modules_->in_double) {
        if (module.original.ends_with("_norm") && kind == std::string_view("bias")) continue;
        give(original_name("double_blocks." + std::to_string(i) + ".", module.original, kind),
             in_double(i, module.original, kind));
      }
    for (int i = 0; i < blocks::layer_count(file_, single_prefix()); ++i) {
      const std::string at = "single_blocks." + std::to_string(i) + ".";
      if (modules_->fused_in_diffusers == nullptr)
        give(at + "linear1." + kind,
             joined(in_single(i, "linear1.qkv", kind), in_single(i, "linear1.mlp", kind)));
      for (const Module& module : modules_->in_single) {
        const bool is_norm = module.original.ends_with("_norm");
        if (module.original.starts_with("linear1.") ||
            (is_norm && kind == std::string_view("bias")))
          continue;
        give(original_name(at, module.original, kind), in_single(i, module.original, kind));
      }
    }
    for (int i = 0; i < approximator_depth(); ++i)
      for (const Module& module : kInApproximator)
        give(std::string(kApproximator) + "layers." + std::to_string(i) + "." +
                 std::string(module.original) + "." + kind,
             in_approximator(i, module.original, kind));
    for (int i = 0; i < network_depth(); ++i)
      give(std::string(kNetworks) + std::to_string(i) + ".param_generator." + kind,
           in_network(i, kind));
  }
  for (int i = 0; i < network_depth(); ++i) {
    const std::string norm = std::string(kNetworks) + std::to_string(i) + ".norm.scale";
    give(norm, {{prefix_ + norm}});
  }
  if (network_depth() > 0)
    for (const char* other : kOthersOfRadiance) give(other, {{prefix_ + other}});
  for (int i = 0; i < approximator_depth(); ++i)
    give(std::string(kApproximator) + "norms." + std::to_string(i) + ".scale",
         in_approximator(i, "norm", "weight"));
}

// Radiance has no img_in.
std::int64_t FluxNames::hidden() const { return file_.size(one(top("txt_in", "weight")), 0); }

std::vector<Part> FluxNames::top(std::string_view module, const char* kind) const {
  const Module& row = look_up(modules_->top, module);
  if (layout_ == FluxLayout::original) return {{original_name(prefix_, module, kind)}};
  std::vector<Part> parts = diffusers_parts(file_, prefix_, row, kind);
  // diffusers keeps (scale, shift) in the last modulation, the original (shift, scale).
  if (module != kFinalModulation) return parts;
  return halves_swapped(one(parts), hidden());
}

std::vector<Part> FluxNames::in_double(int index, std::string_view module, const char* kind) const {
  const Module& row = look_up(modules_->in_double, module);
  const std::string at = double_prefix() + std::to_string(index) + ".";
  if (layout_ == FluxLayout::diffusers) return diffusers_parts(file_, at, row, kind);
  return {{original_name(at, module, kind)}};
}

std::vector<Part> FluxNames::in_single(int index, std::string_view module, const char* kind) const {
  const std::string at = single_prefix() + std::to_string(index) + ".";
  const char* fused = layout_ == FluxLayout::original ? "linear1" : modules_->fused_in_diffusers;
  // linear1 is (q, k, v, mlp) in one tensor.
  if (fused != nullptr && module.starts_with("linear1.")) {
    const std::string tensor = at + fused + "." + kind;
    const std::int64_t queries = 3 * hidden();
    return module == "linear1.qkv" ? std::vector<Part>{{tensor, 0, queries}}
                                   : std::vector<Part>{{tensor, queries, -1}};
  }
  const Module& row = look_up(modules_->in_single, module);
  if (layout_ == FluxLayout::diffusers) return diffusers_parts(file_, at, row, kind);
  return {{original_name(at, module, kind)}};
}

int FluxNames::approximator_depth() const {
  return blocks::layer_count(file_, prefix_ + std::string(kApproximator) + "layers.");
}

int FluxNames::network_depth() const {
  return modules_ == &kChroma ? blocks::layer_count(file_, prefix_ + std::string(kNetworks)) : 0;
}

std::vector<Part> FluxNames::in_network(int index, const char* kind) const {
  return {{prefix_ + std::string(kNetworks) + std::to_string(index) + ".param_generator." + kind}};
}

std::vector<Part> FluxNames::in_approximator(int layer, std::string_view module,
                                             const char* kind) const {
  const std::string at = prefix_ + std::string(kApproximator), number = std::to_string(layer);
  const bool is_original = layout_ == FluxLayout::original;
  if (module == "norm") return {{at + "norms." + number + (is_original ? ".scale" : ".weight")}};
  const Module& row = look_up(kInApproximator, module);
  const std::string layers = at + "layers." + number + ".";
  if (is_original) return {{original_name(layers, module, kind)}};
  return diffusers_parts(file_, layers, row, kind);
}

}  // namespace heddle::denoisers
