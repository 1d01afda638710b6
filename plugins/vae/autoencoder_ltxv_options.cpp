#include "autoencoder_ltxv_options.h"

#include <algorithm>
#include <string>

#include "plugins/blocks/config_inside.h"

namespace heddle::vae {
namespace {

// Whether the blocks of a decoder add their input, in the order of their numbers. The publishers'
// list has the order of an encoder, and so have diffusers' levels.
std::vector<std::optional<bool>> told_residuals(const Value& config, const Value& inside,
                                                int levels) {
  std::vector<std::optional<bool>> told;
  if (const Value list = config.field("upsample_residual"); list.count() > 0) {
    told.resize(2 * std::size_t(levels) + 1);
    for (std::uint32_t i = 0; i < list.count() && i < std::uint32_t(levels); ++i)
      told[2 * (std::size_t(levels) - 1 - i) + 1] = list.item(i).as<bool>();
    return told;
  }
  const Value blocks = inside.field(inside.has("decoder_blocks") ? "decoder_blocks" : "blocks");
  for (std::uint32_t i = blocks.count(); i > 0; --i) {
    const Value block = blocks.item(i - 1);
    told.push_back(block.count() > 1 && block.item(1).is(HEDDLE_KIND_RECORD)
                       ? block.item(1).get<bool>("residual", false)
                       : false);
  }
  return told;
}

void check_part(const Checkpoint& file, const char* name, double value, double most) {
  if (value >= 0 && value <= most) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + name + " is " + std::to_string(value) +
                                           ". It has to be from 0 to " + std::to_string(most) +
                                           ".");
}

}  // namespace

LtxvVaeOptions LtxvVaeOptions::read(const Checkpoint& file, const Value& config,
                                    const LtxvVaeNames& names, VaeSide side) {
  const Value inside = blocks::config_inside(file).field("vae");
  const bool is_decoder = side == VaeSide::decoder;
  LtxvVaeOptions o;
  o.reads_level = is_decoder && file.has(names.one("timestep_scale_multiplier"));
  o.is_causal =
      is_decoder && config.get<bool>("decoder_causal", inside.get<bool>("causal_decoder", false));
  // LTX 2's decoder mirrors: it is told no noise level, and its encoder is that of 0.9.5.
  const bool is_of_ltx2 = is_decoder && !o.reads_level && names.has_gathering_encoder();
  const char* key = is_decoder ? "decoder_spatial_padding_mode" : "encoder_spatial_padding_mode";
  o.mirrors = config.get<std::string>(
                  key, inside.get<std::string>(key, is_of_ltx2 ? "reflect" : "zeros")) == "reflect";
  if (is_decoder) o.residuals_ = told_residuals(config, inside, names.levels());
  if (!o.reads_level) return o;
  o.level_scale = file.number(names.one("timestep_scale_multiplier"));
  o.level = inside.get<double>("decode_timestep", o.level);
  o.noise_share = inside.get<double>("decode_noise_scale", o.noise_share);
  check_part(file, "decode_timestep", o.level, 1);
  check_part(file, "decode_noise_scale", o.noise_share, 1);
  check_part(file, "timestep_scale_multiplier", o.level_scale, 1e6);
  return o;
}

std::optional<bool> LtxvVaeOptions::residual(std::size_t number) const {
  return number < residuals_.size() ? residuals_[number] : std::nullopt;
}

}  // namespace heddle::vae
