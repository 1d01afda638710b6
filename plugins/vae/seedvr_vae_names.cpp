#include "seedvr_vae_names.h"

#include "plugins/blocks/slots.h"

namespace heddle::vae {

std::optional<SeedvrVaeNames> SeedvrVaeNames::find(const Checkpoint& file, bool decoder) {
  // Filters over frames, in modules of AutoencoderKL's names; none of its kind has both.
  const std::string side = decoder ? "decoder." : "encoder.",
                    first = decoder ? "up_blocks.0.upsamplers.0.upscale_conv.weight"
                                    : "down_blocks.0.downsamplers.0.conv.weight";
  const auto prefix = blocks::prefix_before(file, side + first);
  if (!prefix) return std::nullopt;
  const std::string in = *prefix + side + "conv_in.weight";
  constexpr std::uint32_t kFilterRank = 5;
  if (!file.has(in) || file.info(in).rank != kFilterRank ||
      file.info(*prefix + side + first).rank != kFilterRank)
    return std::nullopt;
  return SeedvrVaeNames(decoder, *prefix + side);
}

int SeedvrVaeNames::levels(const Checkpoint& file) const {
  return blocks::layer_count(file, all_levels());
}
int SeedvrVaeNames::resnets(const Checkpoint& file, int level) const {
  return blocks::layer_count(file, this->level(level) + "resnets.");
}

std::vector<SeedvrVaeStep> steps_of(const Checkpoint& file, const SeedvrVaeNames& names,
                                    bool decoder) {
  using Part = SeedvrVaePart;
  const int levels = names.levels(file);
  std::vector<SeedvrVaeStep> steps{{Part::in, "in", names.conv_in(), 0}};
  const auto add_middle = [&](int stage) {
    steps.push_back({Part::resnet, "mid.0", names.mid_resnet(0), stage});
    steps.push_back({Part::attention, "mid.attention", names.attention(), stage});
    steps.push_back({Part::resnet, "mid.1", names.mid_resnet(1), stage});
  };
  if (decoder) add_middle(0);
  const int first = decoder ? 1 : 0;
  for (int level = 0; level < levels; ++level) {
    const std::string path = (decoder ? "up." : "down.") + std::to_string(level);
    for (int i = 0; i < names.resnets(file, level); ++i)
      steps.push_back(
          {Part::resnet, path + "." + std::to_string(i), names.resnet(level, i), first + level});
    if (file.has(names.resample(level) + ".conv.weight"))
      steps.push_back({Part::resample, path + ".resample", names.resample(level), first + level});
  }
  if (!decoder) add_middle(levels);
  steps.push_back({Part::out, "out", names.conv_out(), levels});
  return steps;
}

}  // namespace heddle::vae
