#include "sound_encoders.h"

#include <optional>
#include <string>

#include <heddle/checked.hpp>

#include "plugins/blocks/slots.h"
#include "sound_blocks.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kSoundHead = 64;
// Of wav2vec's filters, which no tensor tells.
constexpr std::int64_t kFirstStride = 5, kFilterStride = 2;
constexpr int kMostFilters = 16;
constexpr std::int64_t kSpectrumTaps = 3;

// The tensors of a layer, by name behind the layer's.
struct SoundLayerNames {
  const char *norm1, *attention, *norm2, *up, *down;
};
constexpr SoundLayerNames kWav2Vec2Layer = {"layer_norm", "attention.", "final_layer_norm",
                                            "feed_forward.intermediate_dense",
                                            "feed_forward.output_dense"},
                          kWhisperLayer = {"self_attn_layer_norm", "self_attn.", "final_layer_norm",
                                           "fc1", "fc2"};

// Builds what both have.
class SoundBuilder {
 public:
  SoundBuilder(const Checkpoint& file, const Value& config, std::string encoder, Blocks& graph)
      : file_(file),
        encoder_(std::move(encoder)),
        width_(file.size(encoder_ + "layer_norm.weight", 0)),
        heads_(config.get<std::int64_t>("num_attention_heads", width_ / kSoundHead)),
        graph_(graph) {
    if (heads_ < 1 || width_ % heads_ != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": a width of " + std::to_string(width_) +
                      " does not divide into " + std::to_string(heads_) +
                      " heads. Give the config.json that belongs to this file.");
  }

  std::int64_t width() const { return width_; }
  void both(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const std::string& module, const Shape& shape) const {
    slots.fill(weight, module + ".weight", shape);
    slots.fill(bias, module + ".bias", {shape[0]});
  }

  // ends_normed: a norm behind the last layer.
  void run(Source hidden, const SoundLayerNames& names, bool norms_after, bool ends_normed) {
    const int layers = blocks::layer_count(file_, encoder_ + "layers.");
    for (int i = 0; i < layers; ++i) {
      graph_.output(("hidden." + std::to_string(i)).c_str(), hidden);
      hidden = add_layer(i, names, norms_after, hidden);
    }
    if (ends_normed) {
      using B = SoundFinish;
      Block block = graph_.add<B>("finish");
      block.link(B::hidden, hidden);
      blocks::Slots slots(file_, block, "finish");
      both(slots, B::norm, B::norm_bias, encoder_ + "layer_norm", {width_});
      hidden = block[B::out];
    }
    graph_.output("last_hidden", hidden);
    graph_.setting("width", width_);
    graph_.setting("layers", std::int64_t{layers});
    graph_.setting("sample_rate", kSoundRate);
  }

 private:
  Source add_layer(int index, const SoundLayerNames& names, bool norms_after,
                   const Source& hidden) const {
    using B = SoundLayer;
    const std::string path = "layer." + std::to_string(index),
                      at = encoder_ + "layers." + std::to_string(index) + ".",
                      seen = at + names.attention;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).set(B::heads, heads_).set(B::norms_after, norms_after);
    blocks::Slots slots(file_, block, path);
    const Shape square{width_, width_};
    const std::string up = at + names.up + ".weight";
    const std::int64_t mlp = file_.has(up) ? file_.size(up, 0) : 4 * width_;
    both(slots, B::norm1, B::norm1_bias, at + names.norm1, {width_});
    both(slots, B::q, B::q_bias, seen + "q_proj", square);
    slots.fill(B::k, seen + "k_proj.weight", square);
    if (file_.has(seen + "k_proj.bias")) slots.fill(B::k_bias, seen + "k_proj.bias", {width_});
    both(slots, B::v, B::v_bias, seen + "v_proj", square);
    both(slots, B::proj, B::proj_bias, seen + "out_proj", square);
    both(slots, B::norm2, B::norm2_bias, at + names.norm2, {width_});
    both(slots, B::up, B::up_bias, at + names.up, {mlp, width_});
    both(slots, B::down, B::down_bias, at + names.down, {width_, mlp});
    return block[B::out];
  }

  const Checkpoint& file_;
  const std::string encoder_;
  const std::int64_t width_, heads_;
  Blocks& graph_;
};

std::optional<std::string> wav2vec2_prefix(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "feature_projection.projection.weight");
  const bool is_there = prefix && file.has(*prefix + "encoder.layer_norm.bias") &&
                        file.has(*prefix + "encoder.pos_conv_embed.conv.bias") &&
                        file.has(*prefix + "feature_extractor.conv_layers.0.conv.weight");
  return is_there ? prefix : std::nullopt;
}

std::optional<std::string> whisper_prefix(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "encoder.embed_positions.weight");
  const bool is_there = prefix && file.has(*prefix + "encoder.conv2.weight") &&
                        file.has(*prefix + "encoder.layers.0.self_attn_layer_norm.weight");
  return is_there ? prefix : std::nullopt;
}

// The filters that halve the points again and again; their channels.
Source add_filters(const Checkpoint& file, const SoundBuilder& builder, const std::string& at,
                   Source hidden, std::int64_t& channels, Blocks& graph) {
  // Points from one state to the next, and that one reads.
  std::int64_t hop = 1, reach = 1;
  using B = SoundFilter;
  const auto module = [&](int i) { return at + std::to_string(i) + "."; };
  const bool has_norms = file.has(module(1) + "layer_norm.weight");
  for (int i = 0; i < kMostFilters && file.has(module(i) + "conv.weight"); ++i) {
    const std::string path = "filter." + std::to_string(i), filter = module(i) + "conv.weight";
    const std::int64_t made = file.size(filter, 0), step = i == 0 ? kFirstStride : kFilterStride;
    reach = checked_sum({reach, checked_product({file.size(filter, 2) - 1, hop}, "taps")}, "taps");
    hop *= step;
    Block block = graph.add<B>(path);
    block.link(B::hidden, hidden).set(B::stride, step).set(B::over_time, !has_norms);
    blocks::Slots slots(file, block, path);
    slots.fill(B::filter, filter, {made, channels, file.size(filter, 2)});
    if (file.has(module(i) + "conv.bias")) slots.fill(B::bias, module(i) + "conv.bias", {made});
    if (i == 0 || has_norms)
      builder.both(slots, B::norm, B::norm_bias, module(i) + "layer_norm", {made});
    hidden = block[B::out];
    channels = made;
  }
  graph.setting("hop", hop);
  graph.setting("reach", reach);
  return hidden;
}

Source add_places(const Checkpoint& file, const SoundBuilder& builder, const std::string& encoder,
                  bool is_normed, const Source& hidden, Blocks& graph) {
  using B = SoundPlaces;
  Block block = graph.add<B>("places");
  block.link(B::hidden, hidden);
  blocks::Slots slots(file, block, "places");
  const std::string at = encoder + "pos_conv_embed.conv.",
                    later = at + "parametrizations.weight.original1";
  const bool is_later = file.has(later);
  const std::string filter = is_later ? later : at + "weight_v",
                    gain = is_later ? at + "parametrizations.weight.original0" : at + "weight_g";
  const std::int64_t width = builder.width(), inner = file.size(filter, 1),
                     taps = file.size(filter, 2);
  if (inner < 1 || width % inner != 0 || taps < 2 || taps % 2 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a filter of positions of " + std::to_string(inner) +
                    " channels and " + std::to_string(taps) + " taps in a width of " +
                    std::to_string(width) + ". The file is damaged or of another model.");
  slots.fill(B::filter, filter, {width, inner, taps});
  slots.fill(B::gain, gain, {1, 1, taps});
  slots.fill(B::bias, at + "bias", {width});
  if (is_normed) builder.both(slots, B::norm, B::norm_bias, encoder + "layer_norm", {width});
  return block[B::out];
}

}  // namespace

int Wav2Vec2::match(const Checkpoint& file, const Value&) {
  return wav2vec2_prefix(file) ? 100 : 0;
}

void Wav2Vec2::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<std::string> prefix = wav2vec2_prefix(file);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of wav2vec 2.0");
  const std::string encoder = *prefix + "encoder.",
                    filters = *prefix + "feature_extractor.conv_layers.",
                    projection = *prefix + "feature_projection.";
  SoundBuilder builder(file, config, encoder, graph);
  const bool is_stable = file.has(filters + "1.layer_norm.weight");
  std::int64_t channels = 1;
  Source hidden = graph.input("sound", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  hidden = add_filters(file, builder, filters, hidden, channels, graph);
  using B = SoundProject;
  Block block = graph.add<B>("project");
  block.link(B::hidden, hidden);
  blocks::Slots slots(file, block, "project");
  builder.both(slots, B::norm, B::norm_bias, projection + "layer_norm", {channels});
  builder.both(slots, B::proj, B::proj_bias, projection + "projection",
               {builder.width(), channels});
  hidden = add_places(file, builder, encoder, !is_stable, block[B::out], graph);
  builder.run(hidden, kWav2Vec2Layer, !is_stable, is_stable);
  graph.setting("family", "wav2vec2");
  graph.setting("normalises", is_stable);
}

int Whisper::match(const Checkpoint& file, const Value&) { return whisper_prefix(file) ? 100 : 0; }

void Whisper::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  using B = SpectrumFilters;
  const std::optional<std::string> prefix = whisper_prefix(file);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no encoder of Whisper");
  const std::string encoder = *prefix + "encoder.";
  SoundBuilder builder(file, config, encoder, graph);
  const std::int64_t bands = file.size(encoder + "conv1.weight", 1), width = builder.width(),
                     positions = file.size(encoder + "embed_positions.weight", 0);
  // Published ones have 80 or 128 bands and 1,500 positions.
  constexpr std::int64_t kMostBands = 201, kMostPositions = 1 << 16;
  if (bands < 1 || bands > kMostBands || positions < 1 || positions > kMostPositions)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": an encoder of " + std::to_string(bands) + " bands and " +
                    std::to_string(positions) + " positions, of at most " +
                    std::to_string(kMostBands) + " and " + std::to_string(kMostPositions) +
                    ". The file is damaged or of another model.");
  Block block = graph.add<B>("filters");
  block.link(B::spectrum,
             graph.input("spectrum", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots slots(file, block, "filters");
  builder.both(slots, B::first, B::first_bias, encoder + "conv1", {width, bands, kSpectrumTaps});
  builder.both(slots, B::second, B::second_bias, encoder + "conv2", {width, width, kSpectrumTaps});
  slots.fill(B::positions, encoder + "embed_positions.weight", {positions, width});
  builder.run(block[B::out], kWhisperLayer, false, true);
  graph.setting("family", "whisper");
  graph.setting("bands", bands);
  graph.setting("frames", 2 * positions);
}

}  // namespace heddle::encoders
