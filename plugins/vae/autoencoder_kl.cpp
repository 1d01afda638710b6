#include "autoencoder_kl.h"

#include <charconv>

#include "autoencoder_kl_names.h"
#include "halvings.h"
#include "packed_latents.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// How the latent of a diffusion model differs from the autoencoder's: published with FLUX.1 and
// Stable Diffusion 1.
struct LatentFormat {
  double scaling, shift;
};
constexpr LatentFormat kFlux{0.3611, 0.1159};
constexpr LatentFormat kStableDiffusion{0.18215, 0};
constexpr LatentFormat kNormalised{1, 0};
constexpr std::int64_t kFluxChannels = 16;

// A number from the config, else from the file's metadata, else the given one.
double number(const Checkpoint& file, const Value& config, const char* key, double otherwise) {
  if (config.has(key) && !config.field(key).is(HEDDLE_KIND_NONE))
    return config.field(key).as<double>();
  const std::optional<std::string> text = file.meta(key);
  if (!text) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": metadata '" + key + "' is '" + *text + "', expected a number");
  return value;
}

// Builds one side's graph: keeps the running output and its number of channels.
class Builder {
 public:
  Builder(const Checkpoint& file, const Value& config, const VaeNames& names, Blocks& graph)
      : file_(file),
        names_(names),
        graph_(graph),
        groups_(config.get<std::int64_t>("norm_num_groups", 32)) {
    if (groups_ <= 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": norm_num_groups is " + std::to_string(groups_));
  }

  // How many pixels a latent pixel is along each side; known after building.
  std::int64_t downscale() const { return cell_side(file_, resamples_); }

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = VaeLatentIn;
    channels_ = file_.size(names_.conv_in() + ".weight", 1);
    const std::int64_t latent = channels_;
    Block in = graph_.add<B>("in");
    const Source z =
        graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT |
                              (names_.mixes_frames() ? 0u : std::uint32_t(HEDDLE_INPUT_BATCH)));
    in.link(B::z, is_packed() ? unpacked(z, latent) : z);
    blocks::Slots slots(file_, in, "in");
    if (has(names_.quant_conv()))
      conv(slots, B::quant, B::quant_bias, names_.quant_conv(), {latent, latent, 1, 1});
    first_conv(slots, B::conv, B::conv_bias);
    hidden_ = in[B::out];
    add_middle();
    for (int level = 0; level < names_.levels(); ++level) {
      add_level(level, "up.");
      add_resample<VaeUpsample>(level, "up." + std::to_string(level) + ".upsample");
    }
    using O = VaeImageOut;
    Block out = graph_.add<O>("out");
    blocks::Slots out_slots(file_, out, "out");
    const std::int64_t colours = file_.size(names_.conv_out() + ".weight", 0);
    finish<O>(out, out_slots, colours);
    graph_.output("image",
                  names_.mixes_frames() ? with_frames(out[O::image], colours) : out[O::image]);
    return latent;
  }

  std::int64_t encode() {
    using B = VaeImageIn;
    channels_ = file_.size(names_.conv_in() + ".weight", 1);
    Block in = graph_.add<B>("in");
    in.link(B::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    blocks::Slots slots(file_, in, "in");
    first_conv(slots, B::conv, B::conv_bias);
    hidden_ = in[B::out];
    for (int level = 0; level < names_.levels(); ++level) {
      add_level(level, "down.");
      add_resample<VaeDownsample>(level, "down." + std::to_string(level) + ".downsample");
    }
    add_middle();
    using O = VaeLatentOut;
    const std::int64_t moments =
        file_.size(names_.conv_out() + ".weight", 0);  // mean and log variance
    Block out = graph_.add<O>("out");
    blocks::Slots out_slots(file_, out, "out");
    finish<O>(out, out_slots, moments);
    if (has(names_.quant_conv()))
      conv(out_slots, O::quant, O::quant_bias, names_.quant_conv(), {moments, moments, 1, 1});
    graph_.output("mean", is_packed() ? packed(out[O::mean], moments / 2) : out[O::mean]);
    graph_.output("logvar", out[O::logvar]);
    return moments / 2;
  }

  // Whether latents are packed and normalised (packed_latents.h).
  bool is_packed() const { return file_.has(names_.statistic("mean")); }

 private:
  template <class B>
  void fill_statistics(Block& block, const char* path, std::int64_t channels) {
    const std::int64_t cell = kLatentPack * kLatentPack * channels;
    blocks::Slots slots(file_, block, path);
    slots.fill(B::mean, names_.statistic("mean"), {cell});
    slots.fill(B::variance, names_.statistic("var"), {cell});
  }
  Source unpacked(const Source& z, std::int64_t channels) {
    using B = VaeUnpackLatent;
    Block block = graph_.add<B>("unpack");
    block.link(B::z, z);
    fill_statistics<B>(block, "unpack", channels);
    return block[B::out];
  }
  Source packed(const Source& latent, std::int64_t channels) {
    using B = VaePackLatent;
    Block block = graph_.add<B>("pack");
    block.link(B::latent, latent);
    fill_statistics<B>(block, "pack", channels);
    return block[B::out];
  }

  bool has(const std::string& module) const { return file_.has(module + ".weight"); }

  void conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, const Shape& shape) {
    slots.fill(filter, module + ".weight", shape);
    slots.fill(bias, module + ".bias", {shape[0]});
  }

  void norm(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const std::string& module, std::int64_t channels) {
    if (channels % groups_ != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": the " + std::to_string(channels) + " channels of '" + module +
                      "' do not divide into " + std::to_string(groups_) +
                      " groups. Give the config.json that belongs to this file.");
    slots.fill(weight, module + ".weight", {channels});
    slots.fill(bias, module + ".bias", {channels});
  }

  void first_conv(blocks::Slots& slots, const Weight& filter, const Weight& bias) {
    const std::int64_t out = file_.size(names_.conv_in() + ".weight", 0);
    conv(slots, filter, bias, names_.conv_in(), {out, channels_, 3, 3});
    channels_ = out;
  }

  void add_resnet(const std::string& path, const std::string& module) {
    using B = VaeResnet;
    // A block's first filter says how many channels it has; when that is missing, filling the slot
    // says so.
    const std::int64_t out =
        has(module + ".conv1") ? file_.size(module + ".conv1.weight", 0) : channels_;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, path);
    norm(slots, B::norm1, B::norm1_bias, module + ".norm1", channels_);
    conv(slots, B::conv1, B::conv1_bias, module + ".conv1", {out, channels_, 3, 3});
    norm(slots, B::norm2, B::norm2_bias, module + ".norm2", out);
    conv(slots, B::conv2, B::conv2_bias, module + ".conv2", {out, out, 3, 3});
    const std::string shortcut = names_.shortcut(module);
    if (out != channels_ || has(shortcut))
      conv(slots, B::shortcut, B::shortcut_bias, shortcut, {out, channels_, 1, 1});
    hidden_ = block[B::out];
    channels_ = out;
    if (names_.mixes_frames()) add_frames(path + ".frames", names_.frames(module));
  }

  void add_frames(const std::string& path, const VaeNames::Frames& names) {
    using B = VaeFrames;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, path);
    const Shape filter{channels_, channels_, 3, 1, 1};
    norm(slots, B::norm1, B::norm1_bias, names.norm1, channels_);
    conv(slots, B::conv1, B::conv1_bias, names.conv1, filter);
    norm(slots, B::norm2, B::norm2_bias, names.norm2, channels_);
    conv(slots, B::conv2, B::conv2_bias, names.conv2, filter);
    slots.fill(B::mix, names.mix, {1});
    hidden_ = block[B::out];
  }

  Source with_frames(const Source& image, std::int64_t colours) {
    using B = VaeFramesOut;
    Block block = graph_.add<B>("out.frames");
    block.link(B::image, image);
    blocks::Slots slots(file_, block, "out.frames");
    conv(slots, B::conv, B::conv_bias, names_.frames_out(), {colours, colours, 3, 1, 1});
    return block[B::out];
  }

  void add_level(int level, const std::string& path) {
    for (int i = 0; i < names_.depth(file_, level); ++i)
      add_resnet(path + std::to_string(level) + ".resnet." + std::to_string(i),
                 names_.resnet(level, i));
  }

  template <class B>
  void add_resample(int level, const std::string& path) {
    const std::string module = names_.resample(level);
    if (!has(module)) return;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    conv(slots, B::conv, B::conv_bias, module, {channels_, channels_, 3, 3});
    hidden_ = block[B::out];
    ++resamples_;
  }

  void add_middle() {
    add_resnet("mid.resnet.0", names_.mid_resnet(0));
    const VaeNames::Attention names = names_.mid_attention(file_);
    if (has(names.norm)) add_attention(names);
    add_resnet("mid.resnet.1", names_.mid_resnet(1));
  }

  void add_attention(const VaeNames::Attention& names) {
    using B = VaeAttention;
    Block block = graph_.add<B>("mid.attention");
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, "mid.attention");
    norm(slots, B::norm, B::norm_bias, names.norm, channels_);
    const auto parts = [&](const char* kind) {
      return std::vector<Part>{{names.q + kind}, {names.k + kind}, {names.v + kind}};
    };
    const bool filters = has(names.q) && file_.info(names.q + ".weight").rank == 4;
    if (filters) {
      slots.fill(B::qkv_filter, parts(".weight"), {3 * channels_, channels_, 1, 1});
      slots.fill(B::proj_filter, names.proj + ".weight", {channels_, channels_, 1, 1});
    } else {
      slots.fill(B::qkv, parts(".weight"), {3 * channels_, channels_});
      slots.fill(B::proj, names.proj + ".weight", {channels_, channels_});
    }
    slots.fill(B::qkv_bias, parts(".bias"), {3 * channels_});
    slots.fill(B::proj_bias, names.proj + ".bias", {channels_});
    hidden_ = block[B::out];
  }

  // The last norm and convolution, which both sides have.
  template <class O>
  void finish(Block& out, blocks::Slots& slots, std::int64_t channels) {
    out.link(O::hidden, hidden_).set(O::groups, groups_);
    norm(slots, O::norm, O::norm_bias, names_.norm_out(), channels_);
    conv(slots, O::conv, O::conv_bias, names_.conv_out(), {channels, channels_, 3, 3});
  }

  const Checkpoint& file_;
  const VaeNames& names_;
  Blocks& graph_;
  std::int64_t groups_, channels_ = 0;
  int resamples_ = 0;
  Source hidden_;
};

void build_side(const Checkpoint& file, const Value& config, Blocks& graph, VaeSide side) {
  const std::optional<VaeNames> names = VaeNames::find(file, side);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no KL autoencoder");
  Builder builder(file, config, *names, graph);
  const std::int64_t channels = side == VaeSide::decoder ? builder.decode() : builder.encode();
  const bool is_packed = builder.is_packed();
  const LatentFormat format = is_packed                   ? kNormalised
                              : channels == kFluxChannels ? kFlux
                                                          : kStableDiffusion;
  const std::int64_t side_of_cell = is_packed ? kLatentPack : 1;
  graph.setting("family", "autoencoder_kl");
  graph.setting("scaling_factor", number(file, config, "scaling_factor", format.scaling));
  graph.setting("shift_factor", number(file, config, "shift_factor", format.shift));
  graph.setting("latent_channels", channels * side_of_cell * side_of_cell);
  graph.setting("downscale", builder.downscale() * side_of_cell);
  if (config.has("preview_factors"))
    graph.setting("preview_factors", config.field("preview_factors"));
}

}  // namespace

int AutoencoderKlDecoder::match(const Checkpoint& file, const Value&) {
  return VaeNames::find(file, VaeSide::decoder) ? 100 : 0;
}
void AutoencoderKlDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_side(file, config, graph, VaeSide::decoder);
}

int AutoencoderKlEncoder::match(const Checkpoint& file, const Value&) {
  return VaeNames::find(file, VaeSide::encoder) ? 100 : 0;
}
void AutoencoderKlEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_side(file, config, graph, VaeSide::encoder);
}

}  // namespace heddle::vae
