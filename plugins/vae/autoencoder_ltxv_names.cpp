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

// The beginning of what shows that a side is there: it is the same in all versions.
std::string first_of(VaeSide side, bool diffusers) {
  if (side == VaeSide::decoder)
    return diffusers ? "mid_block.resnets.0.conv1.conv.weight"
                     : "up_blocks.0.res_blocks.0.conv1.conv.weight";
  return diffusers ? "down_blocks.0.resnets.0.conv1.conv.weight"
                   : "down_blocks.0.res_blocks.0.conv1.conv.weight";
}

std::string in_place_of(std::string name, std::string_view from, std::string_view to) {
  if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  return name;
}

// diffusers' name of the block `number` of `levels`, where residual blocks (even) and changes of
// size (odd) alternate.
std::string alternating(bool is_decoder, int number, int levels) {
  const int level = number / 2;
  const auto of_level = [](const char* side, int i) { return side + std::to_string(i); };
  if (is_decoder) {
    if (number == 0) return "mid_block";
    return number % 2 == 1 ? of_level("up_blocks.", level) + ".upsamplers.0"
                           : of_level("up_blocks.", level - 1);
  }
  if (number == 2 * levels) return "mid_block";
  return of_level("down_blocks.", level) + (number % 2 == 1 ? ".downsamplers.0" : "");
}

}  // namespace

LtxvVaeNames::LtxvVaeNames(const Checkpoint& file, bool diffusers, VaeSide side, std::string prefix)
    : file_(file), diffusers_(diffusers), side_(side), prefix_(std::move(prefix)) {
  if (!diffusers_) return;
  const std::string at = prefix_ + side_of(side_);
  const bool is_decoder = side_ == VaeSide::decoder;
  alternates_ = file_.has(at + (is_decoder ? "up_blocks.0.upsamplers.0.conv.conv.weight"
                                           : "down_blocks.0.downsamplers.0.conv.conv.weight"));
  levels_ = blocks::layer_count(file_, at + (is_decoder ? "up_blocks." : "down_blocks."));
}

std::optional<LtxvVaeNames> LtxvVaeNames::find(const Checkpoint& file, VaeSide side) {
  const std::string at = side_of(side);
  for (const bool diffusers : {false, true}) {
    const auto prefix = blocks::prefix_before(file, at + first_of(side, diffusers));
    if (!prefix) continue;
    const LtxvVaeNames names(file, diffusers, side, *prefix);
    if (file.has(names.one("conv_in.conv.weight")) && file.has(names.means())) return names;
  }
  return std::nullopt;
}

std::string LtxvVaeNames::to_diffusers(std::string name) const {
  const bool is_decoder = side_ == VaeSide::decoder;
  if (name.starts_with("last_")) return name.substr(5);
  const std::string_view beginning = is_decoder ? "up_blocks." : "down_blocks.";
  if (!name.starts_with(beginning)) return name;
  const std::size_t behind = name.find('.', beginning.size());
  const std::string digits = name.substr(beginning.size(), behind - beginning.size());
  const int number = std::atoi(digits.c_str());
  if (alternates_) {
    // The numbers end behind the middle block.
    if (number > 2 * levels_) return "none." + name;
    name.replace(0, behind, alternating(is_decoder, number, levels_));
  } else {
    // A number that diffusers has no name for is of nothing.
    if (std::size_t(number) >= std::size(kUpBlocks)) return "none." + name;
    name.replace(0, behind, is_decoder ? kUpBlocks[number] : kDownBlocks[number]);
  }
  for (const LtxvVaePart& part : kLtxvVaeParts)
    name = in_place_of(std::move(name), part.original, part.diffusers);
  return name;
}

std::string LtxvVaeNames::one(const std::string& original) const {
  return prefix_ + side_of(side_) + (diffusers_ ? to_diffusers(original) : original);
}

std::string LtxvVaeNames::means() const {
  return prefix_ + (diffusers_ ? "latents_mean" : "per_channel_statistics.mean-of-means");
}

std::string LtxvVaeNames::deviations() const {
  return prefix_ + (diffusers_ ? "latents_std" : "per_channel_statistics.std-of-means");
}

bool LtxvVaeNames::has_gathering_encoder() const {
  return file_.has(prefix_ + "encoder." +
                   (diffusers_ ? "down_blocks.0.downsamplers.0.conv.conv.weight"
                               : "down_blocks.1.conv.conv.weight"));
}

}  // namespace heddle::vae
