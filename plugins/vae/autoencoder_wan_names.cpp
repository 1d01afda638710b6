#include "autoencoder_wan_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::vae {

WanNames::WanNames(const Checkpoint& file, bool diffusers, VaeSide side, std::string prefix)
    : diffusers_(diffusers),
      decoder_(side == VaeSide::decoder),
      leveled_(false),
      prefix_(std::move(prefix)),
      side_(prefix_ + (decoder_ ? "decoder." : "encoder.")) {
  const char* const nested = decoder_
                                 ? (diffusers_ ? "up_blocks.0.upsampler.resample.1.weight"
                                               : "upsamples.0.upsamples.0.residual.0.gamma")
                                 : (diffusers_ ? "down_blocks.0.resnets.0.norm1.gamma"
                                               : "downsamples.0.downsamples.0.residual.0.gamma");
  leveled_ = file.has(side_ + nested);
}

std::optional<WanNames> WanNames::find(const Checkpoint& file, VaeSide side) {
  const std::string at = side == VaeSide::decoder ? "decoder." : "encoder.";
  if (const auto prefix = blocks::prefix_before(file, at + "middle.0.residual.0.gamma"))
    return WanNames(file, false, side, *prefix);
  // HunyuanVideo 1.5's autoencoder calls the same its own, and has convolutions inside of modules.
  if (const auto prefix = blocks::prefix_before(file, at + "mid_block.resnets.0.norm1.gamma");
      prefix && !file.has(*prefix + at + "conv_in.conv.weight"))
    return WanNames(file, true, side, *prefix);
  return std::nullopt;
}

std::string WanNames::quant_conv() const {
  if (diffusers_) return prefix_ + (decoder_ ? "post_quant_conv" : "quant_conv");
  return prefix_ + (decoder_ ? "conv2" : "conv1");
}

std::string WanNames::mid_resnet(int index) const {
  return side_ + (diffusers_ ? "mid_block.resnets." + std::to_string(index)
                             : "middle." + std::to_string(2 * index));
}

std::vector<WanNames::Level> WanNames::levels(const Checkpoint& file) const {
  if (!leveled_) return {{flat_steps(file)}};
  const char* const list = diffusers_ ? (decoder_ ? "up_blocks." : "down_blocks.")
                                      : (decoder_ ? "upsamples." : "downsamples.");
  std::vector<Level> all;
  const int count = blocks::layer_count(file, side_ + list);
  for (int i = 0; i < count; ++i) all.push_back(level(file, i));
  return all;
}

WanNames::Level WanNames::level(const Checkpoint& file, int number) const {
  const std::string index = std::to_string(number);
  const std::string at = side_ + (decoder_ ? (diffusers_ ? "up_blocks." : "upsamples.")
                                           : (diffusers_ ? "down_blocks." : "downsamples."));
  const std::string list = at + index +
                           (diffusers_ ? ".resnets."
                            : decoder_ ? ".upsamples."
                                       : ".downsamples.");
  Level made;
  const auto add_resample = [&](const std::string& module) {
    made.steps.push_back({module + ".resample.1", true});
    made.changes_time = file.has(module + ".time_conv.weight");
    if (made.changes_time) made.steps.back().time_conv = module + ".time_conv";
  };
  const int count = blocks::layer_count(file, list);
  for (int i = 0; i < count; ++i) {
    const std::string module = list + std::to_string(i);
    if (file.has(module + ".resample.1.weight"))
      add_resample(module);
    else
      made.steps.push_back({module});
  }
  const std::string change = at + index + (decoder_ ? ".upsampler" : ".downsampler");
  if (diffusers_ && file.has(change + ".resample.1.weight")) add_resample(change);
  return made;
}

std::vector<WanNames::Step> WanNames::flat_steps(const Checkpoint& file) const {
  std::vector<Step> steps;
  const auto add = [&](const std::string& module) {
    const std::string resample = module + ".resample.1";
    const bool is_resample = file.has(resample + ".weight");
    steps.push_back({is_resample ? resample : module, is_resample});
    if (const std::string time = module + ".time_conv"; file.has(time + ".weight"))
      steps.back().time_conv = time;
  };
  if (!diffusers_ || !decoder_) {
    const std::string list = side_ + (diffusers_ ? "down_blocks."
                                      : decoder_ ? "upsamples."
                                                 : "downsamples.");
    const int count = blocks::layer_count(file, list);
    for (int i = 0; i < count; ++i) add(list + std::to_string(i));
    return steps;
  }
  const int levels = blocks::layer_count(file, side_ + "up_blocks.");
  for (int level = 0; level < levels; ++level) {
    const std::string at = side_ + "up_blocks." + std::to_string(level) + ".";
    const int count = blocks::layer_count(file, at + "resnets.");
    for (int i = 0; i < count; ++i) add(at + "resnets." + std::to_string(i));
    if (file.has(at + "upsamplers.0.resample.1.weight")) add(at + "upsamplers.0");
  }
  return steps;
}

WanNames::Resnet WanNames::in_resnet(const std::string& module) const {
  if (diffusers_)
    return {module + ".norm1.gamma", module + ".conv1", module + ".norm2.gamma", module + ".conv2",
            module + ".conv_shortcut"};
  return {module + ".residual.0.gamma", module + ".residual.2", module + ".residual.3.gamma",
          module + ".residual.6", module + ".shortcut"};
}

}  // namespace heddle::vae
