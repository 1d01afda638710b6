#include "audio_vae.h"

#include <algorithm>
#include <optional>
#include <string>

#include "plugins/blocks/config_inside.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// Where a side's tensors are: the publishers' names and those of diffusers differ in the prefix and
// in the statistics alone.
struct AudioVaeNames {
  std::string side, mean, deviation;

  static std::optional<AudioVaeNames> find(const Checkpoint& file, const std::string& side) {
    const auto prefix = blocks::prefix_before(file, side + "mid.block_1.conv1.conv.weight");
    if (!prefix) return {};
    for (const auto& [mean, deviation] :
         {std::pair("per_channel_statistics.mean-of-means", "per_channel_statistics.std-of-means"),
          std::pair("latents_mean", "latents_std")})
      if (file.has(*prefix + mean)) return {{*prefix + side, *prefix + mean, *prefix + deviation}};
    return {};
  }
};

struct AudioVaeNumbers {
  std::int64_t sample_rate = 16000, hop = 160, bands = 64, window = 1024;
};

// The publishers' config has them in several places.
AudioVaeNumbers audio_numbers(const Checkpoint& file, const Value& config) {
  const Value inside = blocks::config_inside(file).field("audio_vae"),
              params = inside.field("model").field("params"), ddconfig = params.field("ddconfig"),
              stft = inside.field("preprocessing").field("stft");
  AudioVaeNumbers n;
  n.sample_rate = config.get<std::int64_t>(
      "sample_rate", params.get<std::int64_t>("sampling_rate", n.sample_rate));
  n.hop = config.get<std::int64_t>("mel_hop_length", stft.get<std::int64_t>("hop_length", n.hop));
  n.window = stft.get<std::int64_t>("filter_length", n.window);
  n.bands = config.get<std::int64_t>("mel_bins", ddconfig.get<std::int64_t>("mel_bins", n.bands));
  const auto axis = config.get<std::string>("causality_axis",
                                            ddconfig.get<std::string>("causality_axis", "height"));
  if (n.sample_rate < 1 || n.hop < 1 || n.bands < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": sample_rate " + std::to_string(n.sample_rate) +
                    ", mel_hop_length " + std::to_string(n.hop) + " and mel_bins " +
                    std::to_string(n.bands) + " in its config have to be 1 or more.");
  if (axis != "height")
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": causality_axis is '" + axis +
                                        "'. Only 'height', that of LTX 2, is supported.");
  return n;
}

// Builds one side's graph: keeps the running output and its number of channels.
class AudioVaeBuilder {
 public:
  AudioVaeBuilder(const Checkpoint& file, const AudioVaeNames& names, Blocks& graph)
      : file_(file), names_(names), graph_(graph) {}

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = AudioLatentIn;
    const std::int64_t latent = file_.size(at("conv_in.conv.weight"), 1);
    channels_ = file_.size(at("conv_in.conv.weight"), 0);
    Block in = graph_.add<B>("in");
    in.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT));
    blocks::Slots slots(file_, in, "in");
    statistics<B>(slots);
    conv(slots, B::conv, B::bias, "conv_in.conv", channels_, latent);
    hidden_ = in[B::out];
    add_middle();
    for (int level = levels("up.") - 1; level >= 0; --level) {
      const std::string path = "up." + std::to_string(level);
      add_resnets(path);
      if (level > 0) add_resample<AudioUpsample>(path + ".upsample", path + ".upsample.conv.conv");
    }
    using O = AudioMelOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    conv(out_slots, O::conv, O::bias, "conv_out.conv", file_.size(at("conv_out.conv.weight"), 0),
         channels_);
    graph_.output("mel", out[O::mel]);
    return latent;
  }

  std::int64_t encode() {
    using B = AudioMelIn;
    channels_ = file_.size(at("conv_in.conv.weight"), 0);
    Block in = graph_.add<B>("in");
    in.link(B::mel, graph_.input("mel", HEDDLE_INPUT_LOOP_INVARIANT));
    blocks::Slots slots(file_, in, "in");
    conv(slots, B::conv, B::bias, "conv_in.conv", channels_,
         file_.size(at("conv_in.conv.weight"), 1));
    hidden_ = in[B::out];
    const int count = levels("down.");
    for (int level = 0; level < count; ++level) {
      const std::string path = "down." + std::to_string(level);
      add_resnets(path);
      if (level + 1 < count)
        add_resample<AudioDownsample>(path + ".downsample", path + ".downsample.conv");
    }
    add_middle();
    using O = AudioLatentOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    statistics<O>(out_slots);
    const std::int64_t moments = file_.size(at("conv_out.conv.weight"), 0);
    conv(out_slots, O::conv, O::bias, "conv_out.conv", moments, channels_);
    graph_.output("mean", out[O::out]);
    return moments / 2;
  }

 private:
  std::string at(const std::string& name) const { return names_.side + name; }

  // A spectrum has four frames and bands for each of the latent.
  int levels(const char* side) const {
    constexpr int kLevels = 3;
    const int count = blocks::layer_count(file_, at(side));
    if (count == kLevels) return count;
    throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": this audio autoencoder has " +
                                        std::to_string(count) +
                                        " levels. Only three, as LTX 2's, are supported.");
  }

  template <class B>
  void statistics(blocks::Slots& slots) {
    const std::int64_t count = file_.size(names_.mean, 0);
    slots.fill(B::mean, names_.mean, {count});
    slots.fill(B::deviation, names_.deviation, {count});
  }
  void conv(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t in, std::int64_t side = 3) {
    slots.fill(matrix, at(module + ".weight"), {out, in, side, side});
    slots.fill(bias, at(module + ".bias"), {out});
  }

  void add_middle() {
    add_resnet("mid.block_1");
    if (file_.has(at("mid.attn_1.q.weight")))
      throw Error(HEDDLE_UNSUPPORTED, file_.path() +
                                          ": this audio autoencoder has attention in the middle, "
                                          "which is not supported. Use that of LTX 2.");
    add_resnet("mid.block_2");
  }
  void add_resnets(const std::string& path) {
    const int count = blocks::layer_count(file_, at(path + ".block."));
    for (int i = 0; i < count; ++i) add_resnet(path + ".block." + std::to_string(i));
  }
  void add_resnet(const std::string& path) {
    using B = AudioResnet;
    if (file_.has(at(path + ".norm1.weight")))
      throw Error(HEDDLE_UNSUPPORTED, file_.path() +
                                          ": this audio autoencoder has norms of groups, which are "
                                          "not supported. Use that of LTX 2.");
    const std::int64_t out = file_.size(at(path + ".conv1.conv.weight"), 0);
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    conv(slots, B::conv1, B::bias1, path + ".conv1.conv", out, channels_);
    conv(slots, B::conv2, B::bias2, path + ".conv2.conv", out, out);
    if (out != channels_)
      conv(slots, B::shortcut, B::shortcut_bias, path + ".nin_shortcut.conv", out, channels_, 1);
    hidden_ = block[B::out];
    channels_ = out;
  }
  template <class B>
  void add_resample(const std::string& path, const std::string& module) {
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    conv(slots, B::conv, B::bias, module, channels_, channels_);
    hidden_ = block[B::out];
  }

  const Checkpoint& file_;
  const AudioVaeNames& names_;
  Blocks& graph_;
  std::int64_t channels_ = 0;
  Source hidden_;
};

void build_audio_side(const Checkpoint& file, const Value& config, Blocks& graph, bool decodes) {
  const auto names = AudioVaeNames::find(file, decodes ? "decoder." : "encoder.");
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no audio autoencoder of LTX 2");
  const AudioVaeNumbers numbers = audio_numbers(file, config);
  AudioVaeBuilder builder(file, *names, graph);
  const std::int64_t channels = decodes ? builder.decode() : builder.encode();
  graph.setting("family", "ltx2_audio_vae");
  graph.setting("latent_channels", channels);
  graph.setting("mel_bins", numbers.bands);
  graph.setting("sample_rate", numbers.sample_rate);
  graph.setting("mel_hop_length", numbers.hop);
  graph.setting("mel_window", numbers.window);
}

}  // namespace

int AudioVaeDecoder::match(const Checkpoint& file, const Value&) {
  return AudioVaeNames::find(file, "decoder.") ? 100 : 0;
}
void AudioVaeDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_audio_side(file, config, graph, true);
}

int AudioVaeEncoder::match(const Checkpoint& file, const Value&) {
  return AudioVaeNames::find(file, "encoder.") ? 100 : 0;
}
void AudioVaeEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_audio_side(file, config, graph, false);
}

}  // namespace heddle::vae
