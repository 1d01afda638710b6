#include "autoencoder_ltxv.h"

#include <optional>
#include <string>
#include <vector>

#include "autoencoder_ltxv_builder.h"

namespace heddle::vae {
namespace {

// The autoencoder's units, for nodes that change latents in these.
void add_statistics(const Checkpoint& file, const LtxvVaeNames& names, std::int64_t channels,
                    Blocks& graph) {
  const auto told = [&](const std::string& tensor) {
    std::vector<double> numbers(static_cast<std::size_t>(channels));
    check(service<heddle_checkpoint_service>().numbers(file.raw(), tensor.c_str(),
                                                       std::uint32_t(channels), numbers.data()));
    std::vector<Value> values;
    for (const double number : numbers) values.push_back(value_of(number));
    return list_of(values);
  };
  graph.setting("statistics_means", told(names.means()));
  graph.setting("statistics_deviations", told(names.deviations()));
}

void build_ltxv_side(const Checkpoint& file, const Value& config, Blocks& graph, VaeSide side) {
  const std::optional<LtxvVaeNames> names = LtxvVaeNames::find(file, side);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no autoencoder of LTX-Video");
  const LtxvVaeOptions options = LtxvVaeOptions::read(file, config, *names, side);
  const std::optional<VaePiece> piece = asked_piece(file, config);
  LtxvVaeBuilder builder(file, *names, options, piece, graph);
  const std::int64_t channels = side == VaeSide::decoder ? builder.decode() : builder.encode();
  graph.setting("family", "autoencoder_ltxv");
  if (piece) {
    builder.add_piece_settings();
    return;
  }
  graph.setting("scaling_factor", 1.0);
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", channels);
  graph.setting("downscale", builder.downscale());
  graph.setting("frame_downscale", builder.frame_downscale());
  graph.setting("pixel_channels", std::int64_t{3});
  graph.setting("piece_configs", piece_configs(config, builder.stages()));
  add_statistics(file, *names, channels, graph);
  if (!options.reads_level) return;
  graph.setting("noise_share", options.noise_share);
  std::vector<Value> planes;
  for (const std::int64_t count : builder.noise_planes()) planes.push_back(value_of(count));
  graph.setting("noise_planes", list_of(planes));
}

}  // namespace

int AutoencoderLtxvDecoder::match(const Checkpoint& file, const Value&) {
  return LtxvVaeNames::find(file, VaeSide::decoder) ? 100 : 0;
}
void AutoencoderLtxvDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_ltxv_side(file, config, graph, VaeSide::decoder);
}

int AutoencoderLtxvEncoder::match(const Checkpoint& file, const Value&) {
  return LtxvVaeNames::find(file, VaeSide::encoder) ? 100 : 0;
}
void AutoencoderLtxvEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_ltxv_side(file, config, graph, VaeSide::encoder);
}

}  // namespace heddle::vae
