#include "autoencoder_wan.h"

#include <span>
#include <type_traits>

#include "autoencoder_kl_blocks.h"
#include "autoencoder_wan_names.h"
#include "autoencoder_wan_parts.h"
#include "autoencoder_wan_video.h"
#include "halvings.h"
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
      : file_(file), names_(names), graph_(graph) {
    const std::string first = names.conv_in() + ".weight";
    if (!names.has_levels())
      frames_ = 3;
    else if (file.has(first) && file.info(first).rank == 5)
      frames_ = file.size(first, 2);
  }

  std::int64_t downscale() const { return patch_ * cell_side(file_, resamples_); }
  std::int64_t pixel_channels() const { return pixels_ / (patch_ * patch_); }

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = VaeLatentIn;
    const std::int64_t latent = file_.size(names_.conv_in() + ".weight", 1);
    require_colours(VaeSide::decoder, file_.size(names_.conv_out() + ".weight", 0));
    Block in = graph_.add<B>("in");
    in.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    blocks::Slots slots(file_, in, "in");
    conv(slots, B::quant, B::quant_bias, names_.quant_conv(), point(latent, latent));
    first_conv(slots, B::conv, B::conv_bias, latent);
    hidden_ = in[B::out];
    add_middle();
    add_levels<VaeUpsample>("up.");
    using O = WanImageOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    out_slots.fill(O::norm, names_.norm_out(), {channels_, 1, 1, 1});
    conv(out_slots, O::conv, O::conv_bias, names_.conv_out(), cube(pixels_, channels_));
    Source image = out[O::image];
    if (patch_ > 1) {
      Block patch = graph_.add<WanPatchOut>("out.patch");
      patch.link(WanPatchOut::hidden, image);
      image = patch[WanPatchOut::image];
    }
    graph_.output("image", image);
    return latent;
  }

  std::int64_t encode() {
    using B = VaeImageIn;
    require_colours(VaeSide::encoder, file_.size(names_.conv_in() + ".weight", 1));
    Source image = graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    if (patch_ > 1) {
      Block patch = graph_.add<WanPatchIn>("in.patch");
      patch.link(WanPatchIn::image, image);
      image = patch[WanPatchIn::out];
    }
    Block in = graph_.add<B>("in");
    in.link(B::image, image);
    blocks::Slots slots(file_, in, "in");
    first_conv(slots, B::conv, B::conv_bias, pixels_);
    hidden_ = in[B::out];
    add_levels<VaeDownsample>("down.");
    add_middle();
    using O = WanLatentOut;
    const std::int64_t moments = file_.size(names_.conv_out() + ".weight", 0);
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    out_slots.fill(O::norm, names_.norm_out(), {channels_, 1, 1, 1});
    conv(out_slots, O::conv, O::conv_bias, names_.conv_out(), cube(moments, channels_));
    conv(out_slots, O::quant, O::quant_bias, names_.quant_conv(), point(moments, moments));
    graph_.output("mean", out[O::mean]);
    graph_.output("logvar", out[O::logvar]);
    return moments / 2;
  }

 private:
  void require_colours(VaeSide side, std::int64_t channels) {
    pixels_ = channels;
    patch_ = wan_patch(file_, names_, side);
    if (patch_ > 1) return;
    if (channels == kColours || channels == kColours + 1) return;
    throw Error(HEDDLE_UNSUPPORTED,
                file_.path() + ": a causal autoencoder of pictures with " +
                    std::to_string(channels) +
                    " channels. Supported are those of Wan 2.1 and Qwen-Image, with 3, those of "
                    "Qwen-Image-Layered and Qwen-Image 2.1, with 4, and that of Wan 2.2, with 12. "
                    "Use qwen_image_vae.safetensors, qwen_image_layered_vae.safetensors, "
                    "qwen_image_2.1_vae_bf16.safetensors or wan2.2_vae.safetensors.");
  }

  // The shape of a filter of 3 x 3 pixels, or of one pixel, over the frames that the file has.
  Shape cube(std::int64_t out, std::int64_t in) const { return over_frames(out, in, frames_, 3); }
  Shape point(std::int64_t out, std::int64_t in) const { return over_frames(out, in, 1, 1); }
  Shape over_frames(std::int64_t out, std::int64_t in, std::int64_t frames,
                    std::int64_t side) const {
    return frames_ == 0 ? Shape{out, in, side, side} : Shape{out, in, frames, side, side};
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
    conv(slots, filter, bias, names_.conv_in(), cube(channels_, in_channels));
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
    conv(slots, B::conv1, B::conv1_bias, parts.conv1, cube(out, channels_));
    slots.fill(B::norm2, parts.norm2, {out, 1, 1, 1});
    conv(slots, B::conv2, B::conv2_bias, parts.conv2, cube(out, out));
    if (out != channels_)
      conv(slots, B::shortcut, B::shortcut_bias, parts.shortcut, point(out, channels_));
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
  void add_levels(const std::string& name) {
    constexpr bool kIsUp = std::is_same_v<R, VaeUpsample>;
    int number = 0, level_number = 0;
    for (const WanNames::Level& level : names_.levels(file_)) {
      const Source before = hidden_;
      const std::int64_t from = channels_;
      const int resamples = resamples_;
      for (const WanNames::Step& step : level.steps) {
        const std::string path = name + std::to_string(number++);
        if (step.is_resample)
          add_resample<R>(path, step.module, kIsUp && !names_.has_levels());
        else
          add_resnet(path, step.module);
      }
      const bool changes_size = resamples_ > resamples;
      if (names_.has_levels() && (changes_size || !kIsUp))
        add_shortcut<kIsUp>(name + "shortcut." + std::to_string(level_number), before, from,
                            changes_size, level.changes_time);
      ++level_number;
    }
  }

  template <class R>
  void add_resample(const std::string& path, const std::string& module, bool halves) {
    const std::int64_t out = halves ? channels_ / 2 : channels_;
    Block block = graph_.add<R>(path);
    block.link(R::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    conv(slots, R::conv, R::conv_bias, module, {out, channels_, 3, 3});
    hidden_ = block[R::out];
    channels_ = out;
    ++resamples_;
  }

  // before: what the level was made of, with `from` channels.
  template <bool kIsUp>
  void add_shortcut(const std::string& path, const Source& before, std::int64_t from,
                    bool changes_size, bool changes_time) {
    using B = std::conditional_t<kIsUp, WanUpShortcut, WanDownShortcut>;
    const std::int64_t frames = changes_time ? 2 : 1;
    require_shortcut(file_, path, kIsUp, {from, channels_, frames});
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_).link(B::from, before).set(B::frames, frames);
    if constexpr (!kIsUp) block.set(B::size, std::int64_t{changes_size ? 2 : 1});
    hidden_ = block[B::out];
  }

  const Checkpoint& file_;
  const WanNames& names_;
  Blocks& graph_;
  std::int64_t channels_ = 0, pixels_ = kColours, patch_ = 1;
  std::int64_t frames_ = 0;  // that filters reach over; 0: they have no axis of frames
  int resamples_ = 0;
  Source hidden_;
};

void build_wan_side(const Checkpoint& file, const Value& config, Blocks& graph, VaeSide side) {
  const std::optional<WanNames> names = WanNames::find(file, side);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no causal autoencoder, as of Wan 2.1");
  if (asks_for_stage(config)) return build_stage(file, *names, config, side, graph);
  WanBuilder builder(file, *names, graph);
  const std::int64_t channels = side == VaeSide::decoder ? builder.decode() : builder.encode();
  graph.setting("family", "autoencoder_wan");
  graph.setting("scaling_factor", 1.0);
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", channels);
  graph.setting("downscale", builder.downscale());
  graph.setting("pixel_channels", builder.pixel_channels());
  if (has_videos(file, *names)) add_video_settings(file, *names, side, graph);
  const blocks::LatentStatistics known = blocks::published_statistics(channels);
  if (known.means.empty() && !config.has("latents_mean")) return;
  graph.setting("latent_means", numbers_or(config, "latents_mean", known.means));
  graph.setting("latent_deviations", numbers_or(config, "latents_std", known.deviations));
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
