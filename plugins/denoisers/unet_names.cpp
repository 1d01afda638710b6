#include "unet_names.h"

#include <algorithm>
#include <span>

#include "module_table.h"
#include "plugins/blocks/slots.h"
#include "unet_lora_control.h"

namespace heddle::denoisers {
namespace {

constexpr Module kUnetTop[] = {
    {"time_embed.0", {"time_embedding.linear_1"}},
    {"time_embed.2", {"time_embedding.linear_2"}},
    {"label_emb.0.0", {"add_embedding.linear_1"}},
    {"label_emb.0.2", {"add_embedding.linear_2"}},
    {"label_emb", {"class_embedding"}},
    {"input_blocks.0.0", {"conv_in"}},
    {"out.0", {"conv_norm_out"}},
    {"out.2", {"conv_out"}},
};
constexpr Module kUnetResnet[] = {
    {"in_layers.0", {"norm1"}},          {"in_layers.2", {"conv1"}},
    {"emb_layers.1", {"time_emb_proj"}}, {"out_layers.0", {"norm2"}},
    {"out_layers.3", {"conv2"}},         {"skip_connection", {"conv_shortcut"}},
};
constexpr Module kUnetDown[] = {{"op", {"conv"}}};
constexpr Module kUnetUp[] = {{"conv", {"conv"}}};
// Transformers have the same names in both; these are in each of their blocks.
constexpr const char* kUnetTransformer[] = {"norm", "proj_in", "proj_out"};
constexpr const char* kUnetTransformerBlock[] = {
    "norm1", "attn1.to_q",    "attn1.to_k", "attn1.to_v", "attn1.to_out.0",
    "norm2", "attn2.to_q",    "attn2.to_k", "attn2.to_v", "attn2.to_out.0",
    "norm3", "ff.net.0.proj", "ff.net.2"};

std::span<const Module> table_of(UnetPart::Kind kind) {
  using Kind = UnetPart::Kind;
  if (kind == Kind::resnet) return kUnetResnet;
  if (kind == Kind::down) return kUnetDown;
  if (kind == Kind::up) return kUnetUp;
  return {};
}

std::string numbered(const char* name, int number) {
  return std::string(name) + "." + std::to_string(number);
}

// What diffusers calls the part of a residual block that sees a single frame.
constexpr std::string_view kSpatial = ".spatial_res_block";

// The name in diffusers of a module that mixes frames.
std::string diffusers_time_module(const UnetPart& part, std::string_view module) {
  std::string parent = part.diffusers;
  if (parent.ends_with(kSpatial)) parent.resize(parent.size() - kSpatial.size());
  constexpr std::string_view kStack = "time_stack.", kPlaces = "time_pos_embed.";
  std::string name(module);
  if (name.starts_with(kPlaces))
    name.replace(kPlaces.size(), name.npos, module.ends_with('0') ? "linear_1" : "linear_2");
  if (!name.starts_with(kStack)) return parent + "." + name;
  const std::string_view inner = module.substr(kStack.size());
  if (part.kind == UnetPart::Kind::transformer)
    return parent + ".temporal_transformer_blocks." + std::string(inner);
  return parent + ".temporal_res_block." + std::string(look_up(kUnetResnet, inner).parts[0]);
}

// The name in diffusers of a part's module.
std::string diffusers_module(const UnetPart& part, std::string_view module) {
  if (module.starts_with("time_")) return diffusers_time_module(part, module);
  const std::span<const Module> table = table_of(part.kind);
  return part.diffusers + "." +
         (table.empty() ? std::string(module) : std::string(look_up(table, module).parts[0]));
}

bool has_all(const Checkpoint& file, const std::string& prefix,
             std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (!file.has(prefix + name)) return false;
  return true;
}

// Of a file that a ControlNet's is joined to: the model's own.
std::optional<std::string> prefix_of_model(const Checkpoint& file, const std::string& tail) {
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    if (name.ends_with(tail) && !name.starts_with(kControlLoraPrefix))
      return name.substr(0, name.size() - tail.size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnetNames> UnetNames::find(const Checkpoint& file) {
  // A ControlNet has no "out", and of diffusers' names no "up_blocks".
  if (const auto prefix = prefix_of_model(file, "input_blocks.0.0.weight"))
    if (has_all(file, *prefix,
                {"time_embed.0.weight", "out.2.weight", "output_blocks.0.0.in_layers.2.weight"}))
      return UnetNames(file, false, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "time_embedding.linear_1.weight"))
    for (const char* first : {"up_blocks.0.resnets.0.conv1.weight",
                              "up_blocks.0.resnets.0.spatial_res_block.conv1.weight"})
      if (has_all(file, *prefix, {"conv_in.weight", "conv_out.weight", first}))
        return UnetNames(file, true, *prefix);
  return std::nullopt;
}

std::optional<UnetNames> UnetNames::find_control(const Checkpoint& file) {
  if (const auto prefix = blocks::prefix_before(file, "zero_convs.0.0.weight"))
    if (has_all(file, *prefix,
                {"input_blocks.0.0.weight", "time_embed.0.weight", "input_hint_block.0.weight"}))
      return UnetNames(file, false, *prefix);
  if (const auto prefix = blocks::prefix_before(file, "controlnet_cond_embedding.conv_in.weight"))
    if (has_all(file, *prefix, {"conv_in.weight", "time_embedding.linear_1.weight"}))
      return UnetNames(file, true, *prefix);
  return std::nullopt;
}

UnetNames::UnetNames(const Checkpoint& file, bool is_diffusers, std::string prefix)
    : file_(file), is_diffusers_(is_diffusers), prefix_(std::move(prefix)) {
  mixes_frames_ =
      file_.has(prefix_ + (is_diffusers_ ? "down_blocks.0.resnets.0" : "input_blocks.1.0") +
                ".time_mixer.mix_factor");
  if (is_diffusers_)
    read_diffusers();
  else
    read_original();
}

std::string UnetNames::stored(const std::string& original, const std::string& diffusers) const {
  return prefix_ + (is_diffusers_ ? diffusers : original);
}

std::string UnetNames::chosen(const std::string& original, const std::string& diffusers,
                              const char* kind) const {
  if (!preferred_.empty())
    if (const std::string name = preferred_ + original + "." + kind; file_.has(name)) return name;
  return stored(original, diffusers) + "." + kind;
}

bool UnetNames::has_module(const std::string& original, const std::string& diffusers,
                           const char* tail) const {
  return file_.has(stored(original, diffusers) + tail);
}

int UnetNames::depth_of(const UnetPart& part) const {
  return blocks::layer_count(file_, stored(part.original, part.diffusers) + ".transformer_blocks.");
}

// The residual block and the transformer of a number. original: "input_blocks.4"; block:
// "down_blocks.1", in which it is the one with this index.
UnetStage UnetNames::stage(const std::string& original, const std::string& block, int index) const {
  using Kind = UnetPart::Kind;
  UnetStage parts{
      {Kind::resnet, original + ".0", resnet_name(block + "." + numbered("resnets", index))}};
  UnetPart transformer{Kind::transformer, original + ".1",
                       block + "." + numbered("attentions", index)};
  transformer.depth = depth_of(transformer);
  if (transformer.depth > 0) parts.push_back(transformer);
  return parts;
}

std::string UnetNames::resnet_name(std::string module) const {
  return mixes_frames_ ? module + std::string(kSpatial) : module;
}

// Behind a stage that is absent no other is read: filling this one says what is missing.
bool UnetNames::is_there(const UnetStage& stage) const {
  const UnetPart& first = stage.front();
  return has_module(first.original + ".in_layers.2", first.diffusers + ".conv1", ".weight");
}

UnetStage UnetNames::middle_stage() const {
  using Kind = UnetPart::Kind;
  UnetStage parts;
  const UnetPart first{Kind::resnet, "middle_block.0", resnet_name("mid_block.resnets.0")};
  if (has_module(first.original + ".in_layers.0", first.diffusers + ".norm1", ".weight"))
    parts.push_back(first);
  UnetPart transformer{Kind::transformer, "middle_block.1", "mid_block.attentions.0"};
  transformer.depth = depth_of(transformer);
  if (transformer.depth > 0) parts.push_back(transformer);
  const UnetPart last{Kind::resnet, "middle_block.2", resnet_name("mid_block.resnets.1")};
  if (has_module(last.original + ".in_layers.0", last.diffusers + ".norm1", ".weight"))
    parts.push_back(last);
  return parts;
}

void UnetNames::read_original() {
  using Kind = UnetPart::Kind;
  inputs_.emplace_back();
  int level = 0, index = 0;
  const int inputs = blocks::layer_count(file_, prefix_ + "input_blocks.");
  for (int i = 1; i < inputs; ++i) {
    const std::string at = numbered("input_blocks", i);
    const std::string block = numbered("down_blocks", level);
    if (file_.has(prefix_ + at + ".0.op.weight")) {
      inputs_.push_back({{Kind::down, at + ".0", block + ".downsamplers.0"}});
      ++level;
      index = 0;
      continue;
    }
    inputs_.push_back(stage(at, block, index++));
    if (!is_there(inputs_.back())) break;
  }
  middle_ = middle_stage();
  level = index = 0;
  const int outputs = blocks::layer_count(file_, prefix_ + "output_blocks.");
  for (int i = 0; i < outputs; ++i) {
    const std::string at = numbered("output_blocks", i);
    const std::string block = numbered("up_blocks", level);
    outputs_.push_back(stage(at, block, index++));
    if (!is_there(outputs_.back())) break;
    const std::string up = numbered(at.c_str(), int(outputs_.back().size()));
    if (!file_.has(prefix_ + up + ".conv.weight")) continue;
    outputs_.back().push_back({Kind::up, up, block + ".upsamplers.0"});
    ++level;
    index = 0;
  }
}

void UnetNames::read_diffusers() {
  using Kind = UnetPart::Kind;
  inputs_.emplace_back();
  const int downs = blocks::layer_count(file_, prefix_ + "down_blocks.");
  bool is_whole = true;
  for (int level = 0; is_whole && level < downs; ++level) {
    const std::string block = numbered("down_blocks", level);
    const int resnets = std::max(blocks::layer_count(file_, prefix_ + block + ".resnets."), 1);
    for (int index = 0; is_whole && index < resnets; ++index) {
      inputs_.push_back(stage(numbered("input_blocks", int(inputs_.size())), block, index));
      is_whole = is_there(inputs_.back());
    }
    if (file_.has(prefix_ + block + ".downsamplers.0.conv.weight"))
      inputs_.push_back({{Kind::down, numbered("input_blocks", int(inputs_.size())) + ".0",
                          block + ".downsamplers.0"}});
  }
  middle_ = middle_stage();
  const int ups = blocks::layer_count(file_, prefix_ + "up_blocks.");
  is_whole = true;
  for (int level = 0; is_whole && level < ups; ++level) {
    const std::string block = numbered("up_blocks", level);
    const int resnets = std::max(blocks::layer_count(file_, prefix_ + block + ".resnets."), 1);
    for (int index = 0; is_whole && index < resnets; ++index) {
      outputs_.push_back(stage(numbered("output_blocks", int(outputs_.size())), block, index));
      is_whole = is_there(outputs_.back());
    }
    if (outputs_.empty() || !file_.has(prefix_ + block + ".upsamplers.0.conv.weight")) continue;
    const std::string at = numbered("output_blocks", int(outputs_.size()) - 1);
    outputs_.back().push_back(
        {Kind::up, numbered(at.c_str(), int(outputs_.back().size())), block + ".upsamplers.0"});
  }
}

bool is_of_videos(const Checkpoint& file) {
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (const std::string name = file.name(i);
        name.find("time_stack") != name.npos || name.find("temporal_transformer") != name.npos)
      return true;
  return false;
}

// Models of unCLIP have another name for what reads a label.
std::string UnetNames::diffusers_top(const Module& module) const {
  constexpr std::string_view kSizes = "add_embedding", kPictures = "class_embedding";
  std::string name = module.parts[0];
  if (name.starts_with(kSizes) && file_.has(prefix_ + "class_embedding.linear_1.weight"))
    name.replace(0, kSizes.size(), kPictures);
  return name;
}

std::string UnetNames::top(std::string_view module, const char* kind) const {
  return chosen(std::string(module), diffusers_top(look_up(kUnetTop, module)), kind);
}

std::string UnetNames::in_part(const UnetPart& part, std::string_view module,
                               const char* kind) const {
  return chosen(part.original + "." + std::string(module), diffusers_module(part, module), kind);
}

template <class Each>
void UnetNames::each(Each&& visit) const {
  for (const Module& module : kUnetTop) visit(std::string(module.original), diffusers_top(module));
  const auto visit_part = [&](const UnetPart& part, const std::string& module) {
    visit(part.original + "." + module, diffusers_module(part, module));
  };
  const auto visit_stage = [&](const UnetStage& stage) {
    for (const UnetPart& part : stage) {
      for (const Module& module : table_of(part.kind))
        visit_part(part, std::string(module.original));
      if (mixes_frames_ && part.kind == UnetPart::Kind::resnet)
        for (const Module& module : kUnetResnet)
          visit_part(part, "time_stack." + std::string(module.original));
      const bool is_transformer = part.kind == UnetPart::Kind::transformer;
      if (mixes_frames_ && (is_transformer || part.kind == UnetPart::Kind::resnet))
        visit_part(part, "time_mixer");
      if (!is_transformer) continue;
      if (mixes_frames_)
        for (const char* module : {"time_pos_embed.0", "time_pos_embed.2"})
          visit_part(part, module);
      for (const char* module : kUnetTransformer) visit_part(part, module);
      for (int i = 0; i < part.depth; ++i) {
        for (const char* module : kUnetTransformerBlock)
          visit_part(part, numbered("transformer_blocks", i) + "." + module);
        if (!mixes_frames_) continue;
        for (const char* module : kUnetTransformerBlock)
          visit_part(part, numbered("time_stack", i) + "." + module);
        for (const char* module : {"norm_in", "ff_in.net.0.proj", "ff_in.net.2"})
          visit_part(part, numbered("time_stack", i) + "." + module);
      }
    }
  };
  for (const UnetStage& stage : inputs_) visit_stage(stage);
  visit_stage(middle_);
  for (const UnetStage& stage : outputs_) visit_stage(stage);
}

void UnetNames::each_module(const Visit& visit) const {
  each([&](const std::string& original, const std::string& diffusers) {
    for (const char* kind : {"weight", "bias"}) {
      const std::string tensor = stored(original, diffusers) + "." + kind;
      if (!file_.has(tensor)) continue;
      visit(original, kind, {{tensor}});
      if (diffusers != original) visit(diffusers, kind, {{tensor}});
    }
    constexpr const char* kMix = ".mix_factor";
    const std::string mix = stored(original, diffusers) + kMix;
    if (!file_.has(mix)) return;
    for (const std::string& name : {original, diffusers}) visit(name + kMix, "weight", {{mix}});
  });
}

void UnetNames::each_original(const VisitTensor& visit) const {
  each([&](const std::string& original, const std::string& diffusers) {
    for (const char* kind : {".weight", ".bias", ".mix_factor"}) {
      const std::string tensor = stored(original, diffusers) + kind;
      if (file_.has(tensor)) visit(original + kind, {{tensor}});
    }
  });
}

}  // namespace heddle::denoisers
