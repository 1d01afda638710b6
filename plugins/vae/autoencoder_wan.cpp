#include "autoencoder_wan.h"

#include <iterator>
#include <span>

#include "autoencoder_kl_blocks.h"
#include "autoencoder_wan_names.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wan_latents.h"

namespace heddle::vae {
namespace {

Value numbers_or(const Value& config, const char* key, std::span<const double> published) {
  if (config.field(key).count() > 0) return config.field(key);
  std::vector<Value> items;
  for (const double number : published) items.push_back(value_of(number));
  return list_of(items);
}

// Builds one side's graph: keeps the running output and its number of channels.
class WanBuilder {
 public:
  WanBuilder(const Checkpoint& file, const WanNames& names, Blocks& graph)
      : file_(file), names_(names), graph_(graph) {}

  std::int64_t downscale() const { return std::int64_t{1} << resamples_; }

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = VaeLatentIn;
    const std::int64_t latent = file_.size(names_.conv_in() + ".weight", 1);
    require_colours(file_.size(names_.conv_out() + ".weight", 0));
    Block in = graph_.add<B>("in");
    in.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    blocks::Slots slots(file_, in, "in");
    conv(slots, B::quant, B::quant_bias, names_.quant_conv(), {latent, latent, 1, 1, 1});
    first_conv(slots, B::conv, B::conv_bias, latent);
    hidden_ = in[B::out];
    add_middle();
    add_steps<VaeUpsample>("up.", true);
    using O = WanImageOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    out_slots.fill(O::norm, names_.norm_out(), {channels_, 1, 1, 1});
    conv(out_slots, O::conv, O::conv_bias, names_.conv_out(), {kColours, channels_, 3, 3, 3});
    graph_.output("image", out[O::image]);
    return latent;
  }

  std::int64_t encode() {
    using B = VaeImageIn;
    require_colours(file_.size(names_.conv_in() + ".weight", 1));
    Block in = graph_.add<B>("in");
    in.link(B::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    blocks::Slots slots(file_, in, "in");
    first_conv(slots, B::conv, B::conv_bias, kColours);
    hidden_ = in[B::out];
    add_steps<VaeDownsample>("down.", false);
    add_middle();
    using O = WanLatentOut;
    const std::int64_t moments = file_.size(names_.conv_out() + ".weight", 0);
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    out_slots.fill(O::norm, names_.norm_out(), {channels_, 1, 1, 1});
    conv(out_slots, O::conv, O::conv_bias, names_.conv_out(), {moments, channels_, 3, 3, 3});
    conv(out_slots, O::quant, O::quant_bias, names_.quant_conv(), {moments, moments, 1, 1, 1});
    graph_.output("mean", out[O::mean]);
    graph_.output("logvar", out[O::logvar]);
    return moments / 2;
  }

 private:
  void require_colours(std::int64_t channels) const {
    if (channels == kColours) return;
    throw Error(HEDDLE_UNSUPPORTED,
                file_.path() + ": a causal autoencoder of pictures with " +
                    std::to_string(channels) +
                    " channels, as of Qwen-Image-Layered or Wan 2.2. Supported is that of Wan 2.1 "
                    "and Qwen-Image, with 3. Use qwen_image_vae.safetensors.");
  }

  // shape: (O, C, T, R, S) in the file, of which the last frame is used; (O, C, R, S): all.
  void conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, const Shape& shape) {
    Part part{module + ".weight"};
    if (shape.size() == 5) part.frame = shape[2];
    slots.fill(filter, {part}, shape);
    slots.fill(bias, module + ".bias", {shape[0]});
  }

  void first_conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
                  std::int64_t in_channels) {
    channels_ = file_.size(names_.conv_in() + ".weight", 0);
    conv(slots, filter, bias, names_.conv_in(), {channels_, in_channels, 3, 3, 3});
  }

  void add_resnet(const std::string& path, const std::string& module) {
    using B = WanResnet;
    const WanNames::Resnet parts = names_.in_resnet(module);
    const std::int64_t out =
        file_.has(parts.conv1 + ".weight") ? file_.size(parts.conv1 + ".weight", 0) : channels_;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    slots.fill(B::norm1, parts.norm1, {channels_, 1, 1, 1});
    conv(slots, B::conv1, B::conv1_bias, parts.conv1, {out, channels_, 3, 3, 3});
    slots.fill(B::norm2, parts.norm2, {out, 1, 1, 1});
    conv(slots, B::conv2, B::conv2_bias, parts.conv2, {out, out, 3, 3, 3});
    if (out != channels_)
      conv(slots, B::shortcut, B::shortcut_bias, parts.shortcut, {out, channels_, 1, 1, 1});
    hidden_ = block[B::out];
    channels_ = out;
  }

  void add_middle() {
    using B = WanAttention;
    add_resnet("mid.0", names_.mid_resnet(0));
    Block block = graph_.add<B>("mid.attention");
    block.link(B::hidden, hidden_);
    const std::string module = names_.mid_attention();
    blocks::Slots slots(file_, block, "mid.attention");
    slots.fill(B::norm, module + ".norm.gamma", {channels_, 1, 1});
    conv(slots, B::qkv, B::qkv_bias, module + ".to_qkv", {3 * channels_, channels_, 1, 1});
    conv(slots, B::proj, B::proj_bias, module + ".proj", {channels_, channels_, 1, 1});
    hidden_ = block[B::out];
    add_resnet("mid.1", names_.mid_resnet(1));
  }

  template <class R>
  void add_steps(const std::string& name, bool halves) {
    int number = 0;
    for (const WanNames::Step& step : names_.steps(file_)) {
      const std::string path = name + std::to_string(number++);
      if (!step.is_resample) {
        add_resnet(path, step.module);
        continue;
      }
      const std::int64_t out = halves ? channels_ / 2 : channels_;
      Block block = graph_.add<R>(path);
      block.link(R::hidden, hidden_);
      blocks::Slots slots(file_, block, path);
      conv(slots, R::conv, R::conv_bias, step.module, {out, channels_, 3, 3});
      hidden_ = block[R::out];
      channels_ = out;
      ++resamples_;
    }
  }

  const Checkpoint& file_;
  const WanNames& names_;
  Blocks& graph_;
  std::int64_t channels_ = 0;
  int resamples_ = 0;
  Source hidden_;
};

void build_wan_side(const Checkpoint& file, const Value& config, Blocks& graph, VaeSide side) {
  const std::optional<WanNames> names = WanNames::find(file, side);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no autoencoder of Wan 2.1");
  WanBuilder builder(file, *names, graph);
  const std::int64_t channels = side == VaeSide::decoder ? builder.decode() : builder.encode();
  graph.setting("family", "autoencoder_wan");
  graph.setting("scaling_factor", 1.0);
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", channels);
  graph.setting("downscale", builder.downscale());
  if (channels != std::int64_t(std::size(blocks::kWanLatentMeans)) && !config.has("latents_mean"))
    return;
  graph.setting("latent_means", numbers_or(config, "latents_mean", blocks::kWanLatentMeans));
  graph.setting("latent_deviations",
                numbers_or(config, "latents_std", blocks::kWanLatentDeviations));
}

}  // namespace

int AutoencoderWanDecoder::match(const Checkpoint& file, const Value&) {
  return WanNames::find(file, VaeSide::decoder) ? 100 : 0;
}
void AutoencoderWanDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_wan_side(file, config, graph, VaeSide::decoder);
}

int AutoencoderWanEncoder::match(const Checkpoint& file, const Value&) {
  return WanNames::find(file, VaeSide::encoder) ? 100 : 0;
}
void AutoencoderWanEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_wan_side(file, config, graph, VaeSide::encoder);
}

}  // namespace heddle::vae
