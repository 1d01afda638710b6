#include "minimax_sizes.h"

#include <string>

#include "model_patches.h"
#include "patches.h"
#include "plugins/blocks/sparse_config.h"
#include "preview_factors.h"

namespace heddle::denoisers {

namespace {

// As many as fit into the rows of a matrix of `each`; what else is wrong is said where it is read.
std::int64_t heads_of(const Checkpoint& file, const std::string& tensor, std::int64_t each) {
  const std::int64_t rows = file.has(tensor) ? file.size(tensor, 0) : each;
  return each > 0 && rows > 0 && rows % each == 0 ? rows / each : 1;
}

}  // namespace

MinimaxSizes read_minimax_sizes(const Checkpoint& file, const Value& config,
                                const MinimaxNames& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  MinimaxSizes s{};
  s.width = size("blocks.0.attn.out_proj.weight", 0);
  s.head = size("blocks.0.attn.q_norm.weight", 0);
  const std::int64_t inner = size("blocks.0.attn.out_proj.weight", 1);
  s.mlp = size("blocks.0.mlp.fc2.weight", 1);
  s.text = size("condition_proj.weight", 1);
  s.channels = size("video_patch_proj.weight", 1) / kPatchArea;
  s.sound = size("audio_patch_proj.weight", 1);
  s.vector = size("blocks.0.adaln_proj.linear.weight", 1);
  s.layers = names.count("blocks");
  s.refiners = names.count("token_refiner.blocks");
  constexpr std::int64_t kOfAHead = 8;  // as published: 16 frequencies of heads of 128
  s.frequencies = names.has("rope.inv_freq")
                      ? size("rope.inv_freq", 0)
                      : config.get<std::int64_t>("rope_freq_dim", s.head / kOfAHead);
  if (s.head < 1 || inner % s.head != 0 || s.head % 2 != 0 || s.frequencies < 1 ||
      s.frequencies > s.head / 6)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": '" + names.one("blocks.0.attn.out_proj.weight") + "' has " +
                    std::to_string(inner) + " columns, which are no heads of " +
                    std::to_string(s.head) + " that turn by " + std::to_string(s.frequencies) +
                    " frequencies for each of three axes. The file is damaged or of another "
                    "model.");
  s.heads = inner / s.head;
  s.output_heads =
      heads_of(file, names.one("final_layer.video_out.weight"), s.channels * kPatchArea);
  return s;
}

std::optional<SparseLayers> sparse_layers(const Value& config) {
  const Value told = config.field(blocks::kSparse);
  if (!told) return std::nullopt;
  SparseLayers sparse{
      told.get<double>("share", 0.1), told.get<std::int64_t>("least_tokens", 0), {}};
  const Value dense = told.field("dense");
  for (std::uint32_t i = 0; i < dense.count(); ++i)
    sparse.dense.push_back(dense.item(i).as<std::int64_t>());
  return sparse;
}

void add_minimax_settings(const MinimaxSizes& s, const MinimaxNames& names, const Value& config,
                          Blocks& graph) {
  graph.setting("family", "minimax-h3");
  graph.setting("latent_channels", s.channels);
  add_preview_factors(LatentKind::minimax_h3, s.channels, graph);
  graph.setting("latent_downscale", std::int64_t{16});
  graph.setting("latent_frames", true);
  graph.setting("latent_sound", true);
  graph.setting("latent_scale", 1.0);
  graph.setting("latent_shift", 0.0);
  graph.setting("patch", std::int64_t{2});
  graph.setting("guidance_embedded", false);
  graph.setting("reference_clips", true);
  graph.setting("context_width", s.text);
  graph.setting("text_encoder", "Qwen3-VL 32B (CLIPLoader, type minimax)");
  // `sampling`: the output is the velocity of a straight flow. The levels of the video, and those
  // of the sound at the same steps.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  graph.setting("noise_shift", 12.0);
  graph.setting("sound_shift", 3.0);
  graph.setting(blocks::kSparseConfig, config.is(HEDDLE_KIND_RECORD) ? config : Record().value());
  graph.setting("sparse_gates", names.has("blocks.0.attn.to_gate_compress.weight"));
  graph.setting("sparse_blocks", std::int64_t(s.layers));
  if (s.output_heads > 1) graph.setting("parallel_heads", s.output_heads);
  add_patched_settings(config, s.width, graph);
  if (sparse_layers(config)) graph.setting("reference_tiles", true);
}

}  // namespace heddle::denoisers
