#include "autoencoder_hunyuan.h"

#include "hunyuan_vae_names.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

constexpr double kHunyuanScale = 0.476986;  // as published
constexpr std::int64_t kHunyuanGroups = 32;
constexpr int kTimeLevels = 2;  // of those that change size the last so many change time, too
constexpr int kMostHunyuanLevels = 16;

// Builds a side: keeps the running output and its channels.
class HunyuanVaeBuilder {
 public:
  HunyuanVaeBuilder(const Checkpoint& file, const HunyuanVaeNames& names, const Value& config,
                    bool decoder, Blocks& graph)
      : file_(file),
        names_(names),
        graph_(graph),
        is_decoder_(decoder),
        groups_(config.get<std::int64_t>("norm_num_groups", kHunyuanGroups)),
        channels_(file.size(names.conv_in() + ".weight", 1)) {
    if (names.levels() > kMostHunyuanLevels)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + std::to_string(names.levels()) +
                                               " levels, of at most " +
                                               std::to_string(kMostHunyuanLevels) +
                                               ". The file is damaged or of another model.");
    for (int level = 0; level < names.levels(); ++level)
      if (resamples(level)) last_resample_ = level, ++resamples_;
  }

  void build() {
    is_decoder_ ? add_in<HunyuanVaeLatentIn>() : add_in<HunyuanVaeImageIn>();
    if (is_decoder_) add_middle();
    for (int level = 0; level < names_.levels(); ++level) {
      const std::string path = (is_decoder_ ? "up." : "down.") + std::to_string(level);
      for (int i = 0; i < names_.resnets(file_, level); ++i)
        add_resnet(path + "." + std::to_string(i), names_.resnet(level, i));
      if (!resamples(level)) continue;
      is_decoder_ ? add_resample<HunyuanVaeUpsample>(path, level)
                  : add_resample<HunyuanVaeDownsample>(path, level);
    }
    if (!is_decoder_) add_middle();
    is_decoder_ ? add_image_out() : add_latent_out();
  }

  std::int64_t downscale() const { return std::int64_t{1} << resamples_; }
  std::int64_t frame_downscale() const {
    return std::int64_t{1} << std::min(resamples_, kTimeLevels);
  }
  std::int64_t latent_channels() const {
    return is_decoder_ ? file_.size(names_.conv_in() + ".weight", 1) : rows(names_.conv_out()) / 2;
  }
  std::int64_t pixel_channels() const {
    return is_decoder_ ? rows(names_.conv_out()) : file_.size(names_.conv_in() + ".weight", 1);
  }

 private:
  bool resamples(int level) const { return file_.has(names_.resample(level) + ".weight"); }
  std::int64_t rows(const std::string& module) const { return file_.size(module + ".weight", 0); }

  void conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(filter, module + ".weight", {out, in, 3, 3, 3});
    slots.fill(bias, module + ".bias", {out});
  }
  void norm(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const std::string& module, std::int64_t channels) const {
    if (groups_ < 1 || channels % groups_ != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + module + "' has " + std::to_string(channels) +
                      " channels, which " + std::to_string(groups_) +
                      " groups do not divide. The file is damaged or of another model.");
    slots.fill(weight, module + ".weight", {channels});
    slots.fill(bias, module + ".bias", {channels});
  }
  // Filters of one pixel of these modules, one after another.
  void pixel(blocks::Slots& slots, const Weight& filter, const Weight& bias,
             const std::vector<std::string>& modules, std::int64_t out, std::int64_t in) const {
    std::vector<Part> filters, biases;
    for (const std::string& module : modules) {
      filters.push_back({module + ".weight"});
      filters.back().frame = 1;
      biases.push_back({module + ".bias"});
    }
    const std::int64_t all = out * std::int64_t(modules.size());
    slots.fill(filter, filters, {all, in, 1, 1, 1});
    slots.fill(bias, biases, {all});
  }

  template <class B>
  void add_in() {
    Block block = graph_.add<B>("in");
    // No HEDDLE_INPUT_BATCH: pictures are frames of one video, of whose latent each looks at all.
    const Source given = graph_.input(is_decoder_ ? "z" : "image", HEDDLE_INPUT_LOOP_INVARIANT);
    blocks::Slots slots(file_, block, "in");
    if constexpr (std::is_same_v<B, HunyuanVaeLatentIn>) {
      block.link(B::z, given);
      if (file_.has(names_.quant() + ".weight"))
        pixel(slots, B::quant, B::quant_bias, {names_.quant()}, channels_, channels_);
    } else {
      block.link(B::image, given);
    }
    const std::int64_t made = rows(names_.conv_in());
    conv(slots, B::conv, B::conv_bias, names_.conv_in(), made, channels_);
    channels_ = made;
    hidden_ = block[B::out];
  }

  void add_middle() {
    add_resnet("mid.0", names_.mid_resnet(0));
    add_attention();
    add_resnet("mid.1", names_.mid_resnet(1));
  }

  void add_resnet(const std::string& path, const std::string& module) {
    using B = HunyuanVaeResnet;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, path);
    const std::int64_t made = rows(module + ".conv1.conv");
    norm(slots, B::norm1, B::norm1_bias, module + ".norm1", channels_);
    conv(slots, B::conv1, B::conv1_bias, module + ".conv1.conv", made, channels_);
    norm(slots, B::norm2, B::norm2_bias, module + ".norm2", made);
    conv(slots, B::conv2, B::conv2_bias, module + ".conv2.conv", made, made);
    if (made != channels_)
      pixel(slots, B::shortcut, B::shortcut_bias, {names_.shortcut(module)}, made, channels_);
    channels_ = made;
    hidden_ = block[B::out];
  }

  void add_attention() {
    using B = HunyuanVaeAttention;
    Block block = graph_.add<B>("mid.attention");
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, "mid.attention");
    norm(slots, B::norm, B::norm_bias, names_.attention_norm(), channels_);
    std::vector<std::string> modules;
    for (const char* which : {"q", "k", "v"}) modules.push_back(names_.projection(file_, which));
    const std::string last = names_.proj_out(file_);
    if (file_.info(modules.front() + ".weight").rank > 2) {
      pixel(slots, B::qkv_filter, B::qkv_bias, modules, channels_, channels_);
      pixel(slots, B::proj_filter, B::proj_bias, {last}, channels_, channels_);
    } else {
      std::vector<Part> matrices, biases;
      for (const std::string& module : modules) {
        matrices.push_back({module + ".weight"});
        biases.push_back({module + ".bias"});
      }
      slots.fill(B::qkv, matrices, {3 * channels_, channels_});
      slots.fill(B::qkv_bias, biases, {3 * channels_});
      slots.fill(B::proj, last + ".weight", {channels_, channels_});
      slots.fill(B::proj_bias, last + ".bias", {channels_});
    }
    hidden_ = block[B::out];
  }

  template <class B>
  void add_resample(const std::string& at, int level) {
    const std::string path = at + ".resample", module = names_.resample(level);
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).set(B::time, level > last_resample_ - kTimeLevels);
    blocks::Slots slots(file_, block, path);
    conv(slots, B::conv, B::conv_bias, module, channels_, channels_);
    hidden_ = block[B::out];
  }

  void add_image_out() {
    using B = HunyuanVaeImageOut;
    Block block = graph_.add<B>("out");
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, "out");
    norm(slots, B::norm, B::norm_bias, names_.norm_out(), channels_);
    conv(slots, B::conv, B::conv_bias, names_.conv_out(), rows(names_.conv_out()), channels_);
    graph_.output("image", block[B::image]);
  }

  void add_latent_out() {
    using B = HunyuanVaeLatentOut;
    Block block = graph_.add<B>("out");
    block.link(B::hidden, hidden_).set(B::groups, groups_);
    blocks::Slots slots(file_, block, "out");
    norm(slots, B::norm, B::norm_bias, names_.norm_out(), channels_);
    const std::int64_t made = rows(names_.conv_out());
    conv(slots, B::conv, B::conv_bias, names_.conv_out(), made, channels_);
    if (file_.has(names_.quant() + ".weight"))
      pixel(slots, B::quant, B::quant_bias, {names_.quant()}, made, made);
    graph_.output("mean", block[B::mean]);
    graph_.output("logvar", block[B::logvar]);
  }

  const Checkpoint& file_;
  const HunyuanVaeNames& names_;
  Blocks& graph_;
  const bool is_decoder_;
  const std::int64_t groups_;
  std::int64_t channels_ = 0;
  int resamples_ = 0, last_resample_ = 0;
  Source hidden_;
};

void build_hunyuan_side(const Checkpoint& file, const Value& config, Blocks& graph, bool decoder) {
  const std::optional<HunyuanVaeNames> names = HunyuanVaeNames::find(file, decoder);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no autoencoder of HunyuanVideo 1.0");
  HunyuanVaeBuilder builder(file, *names, config, decoder, graph);
  builder.build();
  graph.setting("family", "autoencoder_hunyuan");
  graph.setting("scaling_factor", config.get<double>("scaling_factor", kHunyuanScale));
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", builder.latent_channels());
  graph.setting("downscale", builder.downscale());
  graph.setting("pixel_channels", builder.pixel_channels());
  graph.setting("frame_downscale", builder.frame_downscale());
}

}  // namespace

int AutoencoderHunyuanDecoder::match(const Checkpoint& file, const Value&) {
  return HunyuanVaeNames::find(file, true) ? 100 : 0;
}
void AutoencoderHunyuanDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_hunyuan_side(file, config, graph, true);
}

int AutoencoderHunyuanEncoder::match(const Checkpoint& file, const Value&) {
  return HunyuanVaeNames::find(file, false) ? 100 : 0;
}
void AutoencoderHunyuanEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_hunyuan_side(file, config, graph, false);
}

}  // namespace heddle::vae
