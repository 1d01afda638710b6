#include "sd3_names.h"

#include <algorithm>

#include "module_table.h"
#include "patches.h"

namespace heddle::denoisers {
namespace {

constexpr std::string_view kSd3LastModulation = "final_layer.adaLN_modulation.1";
constexpr std::string_view kSd3LastLayer = "final_layer.linear";
constexpr std::string_view kSd3TextModulation = "context_block.adaLN_modulation.1";

constexpr Module kSd3Top[] = {
    {"x_embedder.proj", {"pos_embed.proj"}},
    {"context_embedder", {"context_embedder"}},
    {"t_embedder.mlp.0", {"time_text_embed.timestep_embedder.linear_1"}},
    {"t_embedder.mlp.2", {"time_text_embed.timestep_embedder.linear_2"}},
    {"y_embedder.mlp.0", {"time_text_embed.text_embedder.linear_1"}},
    {"y_embedder.mlp.2", {"time_text_embed.text_embedder.linear_2"}},
    {kSd3LastModulation, {"norm_out.linear"}},
    {kSd3LastLayer, {"proj_out"}},
};
constexpr Module kSd3Block[] = {
    {"x_block.adaLN_modulation.1", {"norm1.linear"}},
    {kSd3TextModulation, {"norm1_context.linear"}},
    {"x_block.attn.qkv", {"attn.to_q", "attn.to_k", "attn.to_v"}, "attn.to_qkv"},
    {"context_block.attn.qkv",
     {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"},
     "attn.to_added_qkv"},
    {"x_block.attn2.qkv", {"attn2.to_q", "attn2.to_k", "attn2.to_v"}, "attn2.to_qkv"},
    {"x_block.attn.ln_q", {"attn.norm_q"}},
    {"x_block.attn.ln_k", {"attn.norm_k"}},
    {"context_block.attn.ln_q", {"attn.norm_added_q"}},
    {"context_block.attn.ln_k", {"attn.norm_added_k"}},
    {"x_block.attn2.ln_q", {"attn2.norm_q"}},
    {"x_block.attn2.ln_k", {"attn2.norm_k"}},
    {"x_block.attn.proj", {"attn.to_out.0"}},
    {"context_block.attn.proj", {"attn.to_add_out"}},
    {"x_block.attn2.proj", {"attn2.to_out.0"}},
    {"x_block.mlp.fc1", {"ff.net.0.proj"}},
    {"x_block.mlp.fc2", {"ff.net.2"}},
    {"context_block.mlp.fc1", {"ff_context.net.0.proj"}},
    {"context_block.mlp.fc2", {"ff_context.net.2"}},
};

// Rows that stand pixel by pixel of a token, channel by channel.
std::vector<Part> by_channels(const std::string& tensor, std::int64_t rows) {
  const std::int64_t channels = rows / kPatchArea;
  std::vector<Part> parts;
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t pixel = 0; pixel < kPatchArea; ++pixel) {
      const std::int64_t row = pixel * channels + channel;
      parts.push_back({tensor, row, row + 1});
    }
  return parts;
}

}  // namespace

std::optional<Sd3Names> Sd3Names::find(const Checkpoint& file) {
  if (const auto prefix =
          blocks::prefix_before(file, "joint_blocks.0.context_block.attn.qkv.weight"))
    if (file.has(*prefix + "x_embedder.proj.weight") &&
        file.has(*prefix + "final_layer.linear.weight"))
      return Sd3Names(file, Layout::original, *prefix);
  // ControlNets have the same blocks, and no last layer.
  if (const auto prefix =
          blocks::prefix_before(file, "transformer_blocks.0.attn.add_q_proj.weight"))
    if (file.has(*prefix + "pos_embed.proj.weight") && file.has(*prefix + "proj_out.weight") &&
        file.has(*prefix + "time_text_embed.text_embedder.linear_1.weight"))
      return Sd3Names(file, Layout::diffusers, *prefix);
  return std::nullopt;
}

std::optional<Sd3Names> Sd3Names::find_control(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "pos_embed_input.proj.weight");
  for (const char* name : {"transformer_blocks.0.attn.to_q.weight", "controlnet_blocks.0.weight",
                           "time_text_embed.text_embedder.linear_1.weight"})
    if (!prefix || !file.has(*prefix + name)) return std::nullopt;
  Sd3Names names(file, Layout::diffusers, *prefix);
  names.is_control_ = true;
  return names;
}

std::string Sd3Names::block_prefix() const {
  return prefix_ + (layout_ == Layout::original ? "joint_blocks." : "transformer_blocks.");
}

std::string Sd3Names::positions() const {
  return prefix_ + (layout_ == Layout::original ? "pos_embed" : "pos_embed.pos_embed");
}

bool Sd3Names::has(const std::vector<Part>& parts) const {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return file_.has(part.tensor); });
}

std::vector<Part> Sd3Names::as_stored(std::string_view module, const char* kind) const {
  const Module& row = look_up(kSd3Top, module);
  if (layout_ == Layout::diffusers) return diffusers_parts(file_, prefix_, row, kind);
  return {{prefix_ + std::string(module) + "." + kind}};
}

std::vector<Part> Sd3Names::top(std::string_view module, const char* kind) const {
  const std::vector<Part> parts = as_stored(module, kind);
  const std::string& tensor = parts.front().tensor;
  if (!file_.has(tensor)) return parts;
  const std::int64_t rows = file_.size(tensor, 0);
  if (module == kSd3LastLayer && rows % kPatchArea == 0) return by_channels(tensor, rows);
  // diffusers keeps (scale, shift) in the last modulation, the original (shift, scale).
  if (module == kSd3LastModulation && layout_ == Layout::diffusers)
    return halves_swapped(tensor, rows / 2);
  return parts;
}

std::vector<Part> Sd3Names::in_block(int index, std::string_view module, const char* kind) const {
  const Module& row = look_up(kSd3Block, module);
  const std::string at = block_prefix() + std::to_string(index) + ".";
  if (layout_ == Layout::original) return {{at + std::string(module) + "." + kind}};
  const std::vector<Part> parts = diffusers_parts(file_, at, row, kind);
  // So it does in the last block's, which has no more of the text than that.
  if (module == kSd3TextModulation && index + 1 == depth() && !is_control_ && has(parts))
    return halves_swapped(parts.front().tensor, file_.size(parts.front().tensor, 0) / 2);
  return parts;
}

// One of `count` equal stretches of rows.
std::vector<Part> Sd3Names::rows(const std::vector<Part>& parts, std::int64_t part,
                                 std::int64_t count) const {
  if (count == 1) return parts;
  if (std::int64_t(parts.size()) == count) return {parts[std::size_t(part)]};
  const std::string& tensor = parts.front().tensor;
  const std::int64_t all = file_.size(tensor, 0);
  return {{tensor, all * part / count, all * (part + 1) / count}};
}

void Sd3Names::each_module(const Visit& visit) const {
  const Part table{positions()};
  if (file_.has(table.tensor))
    for (const char* name : {"pos_embed", "pos_embed.pos_embed"}) visit(name, "weight", {table});
  for (const char* kind : {"weight", "bias"}) {
    for (const Module& module : kSd3Top) {
      const std::vector<Part> stored = as_stored(module.original, kind);
      if (!has(stored)) continue;
      visit(std::string(module.original), kind,
            module.original == kSd3LastModulation ? top(module.original, kind) : stored);
      // In diffusers' the halves are the other way round.
      const bool is_turned = module.original == kSd3LastModulation && layout_ == Layout::original;
      const std::string& tensor = stored.front().tensor;
      visit(module.parts[0], kind,
            is_turned ? halves_swapped(tensor, file_.size(tensor, 0) / 2) : stored);
    }
    const int blocks = depth();
    for (int i = 0; i < blocks; ++i)
      for (const Module& module : kSd3Block) {
        const std::vector<Part> parts = in_block(i, module.original, kind);
        if (!has(parts)) continue;
        const std::string number = std::to_string(i) + ".";
        visit("joint_blocks." + number + std::string(module.original), kind, parts);
        const std::string at = "transformer_blocks." + number;
        if (module.fused != nullptr) visit(at + module.fused, kind, parts);
        const std::int64_t names = module.parts[1] == nullptr ? 1 : 3;
        for (std::int64_t n = 0; n < names; ++n) {
          std::vector<Part> named = rows(parts, n, names);
          if (module.original == kSd3TextModulation && i + 1 == blocks) {
            const std::string& tensor = parts.front().tensor;
            named = layout_ == Layout::original ? halves_swapped(tensor, file_.size(tensor, 0) / 2)
                                                : std::vector<Part>{{tensor}};
          }
          visit(at + module.parts[n], kind, named);
        }
      }
  }
}

void Sd3Names::each_original(const VisitTensor& visit) const {
  const auto give = [&](const std::string& name, const std::vector<Part>& parts) {
    if (has(parts)) visit(name, parts);
  };
  give("pos_embed", {{positions()}});
  for (const char* kind : {"weight", "bias"}) {
    const std::string tail = std::string(".") + kind;
    for (const Module& module : kSd3Top)
      give(std::string(module.original) + tail, module.original == kSd3LastLayer
                                                    ? as_stored(module.original, kind)
                                                    : top(module.original, kind));
    for (int i = 0; i < depth(); ++i)
      for (const Module& module : kSd3Block)
        give("joint_blocks." + std::to_string(i) + "." + std::string(module.original) + tail,
             in_block(i, module.original, kind));
  }
}

}  // namespace heddle::denoisers
