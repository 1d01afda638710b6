#include "wan_names.h"

#include <charconv>
#include <string_view>
#include <utility>

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
// What begins names in Animate.
constexpr WanRenamed kAnimateBeginnings[] = {
    {"motion_encoder.dec.direction.weight", "motion_encoder.motion_synthesis_weight"},
    {"motion_encoder.enc.fc.", "motion_encoder.motion_network."},
    {"motion_encoder.enc.net_app.convs.0.0.", "motion_encoder.conv_in."},
    {"motion_encoder.enc.net_app.convs.0.1.", "motion_encoder.conv_in.act_fn."},
    {"face_encoder.conv1_local.conv.", "face_encoder.conv1_local."},
    {"face_encoder.conv2.conv.", "face_encoder.conv2."},
    {"face_encoder.conv3.conv.", "face_encoder.conv3."},
    {"face_adapter.fuser_blocks.", "face_adapter."},
};
// What stands in the names of its adapters and of its motion encoder's blocks, which the original
// ones count from 1.
constexpr WanRenamed kAdapterParts[] = {
    {".q_norm.", ".norm_q."},  {".k_norm.", ".norm_k."},  {".linear1_q.", ".to_q."},
    {".linear1_k.", ".to_k."}, {".linear1_v.", ".to_v."}, {".linear2.", ".to_out."},
};
constexpr WanRenamed kMotionParts[] = {
    {".conv1.1.", ".conv1.act_fn."}, {".conv1.0.", ".conv1."},    {".conv2.2.", ".conv2.act_fn."},
    {".conv2.1.", ".conv2."},        {".skip.1.", ".conv_skip."},
};
constexpr WanRenamed kMotionBlocks = {"motion_encoder.enc.net_app.convs.",
                                      "motion_encoder.res_blocks."},
                     kMotionOut = {"motion_encoder.enc.net_app.convs.8.",
                                   "motion_encoder.conv_out."};
constexpr std::string_view kBlocks = "blocks.", kVaceBlocks = "vace_blocks.";

// The first of the parts that stands in a name.
template <std::size_t count>
std::string part_renamed(std::string name, const WanRenamed (&parts)[count],
                         std::string_view WanRenamed::*from, std::string_view WanRenamed::*to) {
  for (const WanRenamed& part : parts)
    if (const std::size_t at = name.find(part.*from); at != name.npos)
      return name.replace(at, (part.*from).size(), part.*to);
  return name;
}

std::string animate_renamed(std::string name, std::string_view WanRenamed::*from,
                            std::string_view WanRenamed::*to) {
  const bool is_original = from == &WanRenamed::original;
  for (const WanRenamed& beginning : kAnimateBeginnings)
    if (name.starts_with(beginning.*from)) {
      name.replace(0, (beginning.*from).size(), beginning.*to);
      return name.starts_with("face_adapter.") ? part_renamed(name, kAdapterParts, from, to) : name;
    }
  // Filters behind the last block, of as many blocks as published models have.
  if (!is_original && name.starts_with(kMotionOut.diffusers))
    return name.replace(0, kMotionOut.diffusers.size(), kMotionOut.original);
  if (!name.starts_with(kMotionBlocks.*from)) return name;
  const char* const digits = name.data() + (kMotionBlocks.*from).size();
  int number = 0;
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), number);
  const std::string tail = name.substr(std::size_t(end - name.data()));
  if (error != std::errc() || number < (is_original ? 1 : 0)) return name;
  if (tail == ".weight") return std::string(kMotionOut.diffusers) + "weight";
  return std::string(kMotionBlocks.*to) + std::to_string(is_original ? number - 1 : number + 1) +
         part_renamed(tail, kMotionParts, from, to);
}

std::string wan_renamed(std::string name, std::string_view WanRenamed::*from,
                        std::string_view WanRenamed::*to) {
  if (!name.starts_with(kBlocks) && !name.starts_with(kVaceBlocks)) {
    for (const WanRenamed& beginning : kWanBeginnings)
      if (name.starts_with(beginning.*from))
        return name.replace(0, (beginning.*from).size(), beginning.*to);
    return animate_renamed(std::move(name), from, to);
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
