#include "autoencoder_kl_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// Where a file has the first filter of the middle of one side.
constexpr const char* kMiddles[] = {"mid_block.resnets.0.conv1.weight", "mid.block_1.conv1.weight",
                                    "mid_block.resnets.0.spatial_res_block.conv1.weight"};

}  // namespace

std::optional<VaeNames> VaeNames::find(const Checkpoint& file, VaeSide side) {
  VaeNames names;
  names.decoder_ = side == VaeSide::decoder;
  const std::string name = names.decoder_ ? "decoder." : "encoder.";
  for (const std::string middle : kMiddles) {
    const bool diffusers = middle.starts_with("mid_block.");
    const std::optional<std::string> prefix = blocks::prefix_before(file, name + middle);
    if (!prefix || !file.has(*prefix + name + "conv_in.weight")) continue;
    // Causal autoencoders have the same names: convolutions over time, or other norms.
    const bool is_causal = file.info(*prefix + name + "conv_in.weight").rank != 4 ||
                           file.has(*prefix + name + "mid_block.resnets.0.norm1.gamma");
    if (is_causal) continue;
    names.diffusers_ = diffusers;
    names.prefix_ = *prefix;
    names.side_ = *prefix + name;
    names.mixes_frames_ =
        file.has(names.side_ + (diffusers ? "mid_block.resnets.0.time_mixer" : "mid.block_1") +
                 ".mix_factor");
    names.is_quant_inside_ =
        file.has(names.side_ + (names.decoder_ ? "post_quant_conv" : "quant_conv") + ".weight");
    const char* levels = names.decoder_ ? (diffusers ? "up_blocks." : "up.")
                                        : (diffusers ? "down_blocks." : "down.");
    names.levels_ = blocks::layer_count(file, names.side_ + levels);
    return names;
  }
  return std::nullopt;
}

VaeNames VaeNames::original() const {
  VaeNames names = *this;
  names.diffusers_ = names.is_quant_inside_ = false;
  names.prefix_.clear();
  names.side_ = decoder_ ? "decoder." : "encoder.";
  return names;
}

std::string VaeNames::level(int index) const {
  if (diffusers_) return side_ + (decoder_ ? "up_blocks." : "down_blocks.") + std::to_string(index);
  return side_ +
         (decoder_ ? "up." + std::to_string(levels_ - 1 - index) : "down." + std::to_string(index));
}

int VaeNames::depth(const Checkpoint& file, int index) const {
  return blocks::layer_count(file, level(index) + (diffusers_ ? ".resnets." : ".block."));
}

std::string VaeNames::resnet(int index, int resnet) const {
  return level(index) + (diffusers_ ? ".resnets." : ".block.") + std::to_string(resnet) + spatial();
}

std::string VaeNames::mid_resnet(int index) const {
  return side_ + (diffusers_ ? "mid_block.resnets." + std::to_string(index) + spatial()
                             : "mid.block_" + std::to_string(index + 1));
}

VaeNames::Frames VaeNames::frames(const std::string& resnet) const {
  const std::string parent = resnet.substr(0, resnet.size() - spatial().size());
  if (!diffusers_) {
    const std::string at = parent + ".time_stack.";
    return {at + "in_layers.0", at + "in_layers.2", at + "out_layers.0", at + "out_layers.3",
            parent + ".mix_factor"};
  }
  const std::string at = parent + ".temporal_res_block.";
  return {at + "norm1", at + "conv1", at + "norm2", at + "conv2",
          parent + ".time_mixer.mix_factor"};
}

std::string VaeNames::resample(int index) const {
  if (diffusers_) return level(index) + (decoder_ ? ".upsamplers.0.conv" : ".downsamplers.0.conv");
  return level(index) + (decoder_ ? ".upsample.conv" : ".downsample.conv");
}

VaeNames::Attention VaeNames::mid_attention(const Checkpoint& file) const {
  if (!diffusers_) {
    const std::string at = side_ + "mid.attn_1.";
    return {at + "norm", at + "q", at + "k", at + "v", at + "proj_out"};
  }
  const std::string at = side_ + "mid_block.attentions.0.";
  // Early diffusers called the same four matrices otherwise.
  if (file.has(at + "query.weight"))
    return {at + "group_norm", at + "query", at + "key", at + "value", at + "proj_attn"};
  return {at + "group_norm", at + "to_q", at + "to_k", at + "to_v", at + "to_out.0"};
}

}  // namespace heddle::vae
