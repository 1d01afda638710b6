#include "autoencoder_ltxv_names.h"

#include <cstdlib>
#include <string_view>

#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// What diffusers calls the original blocks of a side, by their number.
constexpr std::string_view kUpBlocks[] = {
    "mid_block",   "up_blocks.0",         "up_blocks.1.upsamplers.0",
    "up_blocks.1", "up_blocks.2.conv_in", "up_blocks.2.upsamplers.0",
    "up_blocks.2", "up_blocks.3.conv_in", "up_blocks.3.upsamplers.0",
    "up_blocks.3"};
constexpr std::string_view kDownBlocks[] = {
    "down_blocks.0", "down_blocks.0.downsamplers.0", "down_blocks.0.conv_out",
    "down_blocks.1", "down_blocks.1.downsamplers.0", "down_blocks.1.conv_out",
    "down_blocks.2", "down_blocks.2.downsamplers.0", "down_blocks.3",
    "mid_block"};
struct LtxvVaePart {
  std::string_view original, diffusers;
};
constexpr LtxvVaePart kLtxvVaeParts[] = {{".res_blocks.", ".resnets."},
                                         {".norm3.norm.", ".norm3."},
                                         {".conv_shortcut.", ".conv_shortcut.conv."}};

const char* side_of(VaeSide side) { return side == VaeSide::decoder ? "decoder." : "encoder."; }

std::string ltxv_vae_to_diffusers(std::string name, VaeSide side) {
  const bool is_decoder = side == VaeSide::decoder;
  const std::string_view beginning = is_decoder ? "up_blocks." : "down_blocks.";
  if (!name.starts_with(beginning)) return name;
  const std::size_t behind = name.find('.', beginning.size());
  const std::string digits = name.substr(beginning.size(), behind - beginning.size());
  const auto number = std::size_t(std::atoi(digits.c_str()));
  // A number that diffusers has no name for is of nothing.
  if (number >= std::size(kUpBlocks)) return "none." + name;
  name.replace(0, behind, is_decoder ? kUpBlocks[number] : kDownBlocks[number]);
  for (const LtxvVaePart& part : kLtxvVaeParts)
    if (const std::size_t at = name.find(part.original); at != name.npos)
      name.replace(at, part.original.size(), part.diffusers);
  return name;
}

}  // namespace

std::optional<LtxvVaeNames> LtxvVaeNames::find(const Checkpoint& file, VaeSide side) {
  const std::string at = side_of(side),
                    first = side == VaeSide::decoder
                                ? "up_blocks.0.res_blocks.0.conv1.conv.weight"
                                : "down_blocks.0.res_blocks.0.conv1.conv.weight";
  for (const bool diffusers : {false, true}) {
    const auto prefix =
        blocks::prefix_before(file, at + (diffusers ? ltxv_vae_to_diffusers(first, side) : first));
    if (!prefix) continue;
    const LtxvVaeNames names(file, diffusers, side, *prefix);
    if (file.has(names.one("conv_in.conv.weight")) && file.has(names.means())) return names;
  }
  return std::nullopt;
}

std::string LtxvVaeNames::one(const std::string& original) const {
  return prefix_ + side_of(side_) +
         (diffusers_ ? ltxv_vae_to_diffusers(original, side_) : original);
}

std::string LtxvVaeNames::means() const {
  return prefix_ + (diffusers_ ? "latents_mean" : "per_channel_statistics.mean-of-means");
}

std::string LtxvVaeNames::deviations() const {
  return prefix_ + (diffusers_ ? "latents_std" : "per_channel_statistics.std-of-means");
}

const char* LtxvVaeNames::of_later_version() const {
  const std::string at = prefix_ + side_of(side_);
  if (file_.has(at + "timestep_scale_multiplier")) return "0.9.1 or later, with a noise level";
  if (file_.has(at + (diffusers_ ? "down_blocks.0.downsamplers.0.conv.conv.weight"
                                 : "down_blocks.1.conv.conv.weight")))
    return "0.9.5 or later";
  return nullptr;
}

}  // namespace heddle::vae
