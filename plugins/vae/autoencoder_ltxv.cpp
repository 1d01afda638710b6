#include "autoencoder_ltxv.h"

#include <optional>
#include <string_view>

#include "autoencoder_ltxv_names.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// Builds one side's graph: keeps the running output and its number of channels.
class LtxvVaeBuilder {
 public:
  LtxvVaeBuilder(const Checkpoint& file, const LtxvVaeNames& names, Blocks& graph)
      : file_(file), names_(names), graph_(graph) {}

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = LtxvVaeLatentIn;
    const std::int64_t latent = size_of("conv_in", 1);
    channels_ = size_of("conv_in", 0);
    Block in = graph_.add<B>("in");
    // No HEDDLE_INPUT_BATCH: what is made has a row for each frame, not for each video.
    in.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT));
    blocks::Slots slots(file_, in, "in");
    statistics<B>(slots, latent);
    conv<B>(slots, "conv_in", channels_, latent);
    hidden_ = in[B::out];
    add_steps<LtxvVaeUpsample>("up_blocks.", 8);
    using O = LtxvVaeImageOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    conv<O>(out_slots, "conv_out", kPixels, channels_);
    graph_.output("image", out[O::image]);
    return latent;
  }

  std::int64_t encode() {
    using B = LtxvVaeImageIn;
    is_causal_ = true;
    channels_ = size_of("conv_in", 0);
    Block in = graph_.add<B>("in");
    in.link(B::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT));
    blocks::Slots slots(file_, in, "in");
    conv<B>(slots, "conv_in", channels_, kPixels);
    hidden_ = in[B::out];
    add_steps<LtxvVaeDownsample>("down_blocks.", 1);
    using O = LtxvVaeLatentOut;
    const std::int64_t moments = size_of("conv_out", 0), latent = moments - 1;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    statistics<O>(out_slots, latent);
    conv<O>(out_slots, "conv_out", moments, channels_);
    graph_.output("mean", out[O::out]);
    graph_.output("logvar", out[O::logvar]);
    return latent;
  }

  int resamples() const { return resamples_; }

 private:
  static constexpr std::int64_t kPixels = 3 * 4 * 4;

  std::int64_t size_of(const std::string& module, std::uint32_t axis) const {
    return file_.size(names_.one(module + ".conv.weight"), axis);
  }

  template <class B>
  void statistics(blocks::Slots& slots, std::int64_t latent) {
    slots.fill(B::mean, names_.means(), {latent});
    slots.fill(B::deviation, names_.deviations(), {latent});
  }

  void filter(blocks::Slots& slots, const std::string& module, const Weight& first,
              const Weight& second, const Weight& third, const Weight& bias, std::int64_t out,
              std::int64_t in) {
    const std::string at = names_.one(module + ".conv.");
    const Weight* const parts[] = {&first, &second, &third};
    for (std::int64_t i = 0; i < 3; ++i) {
      Part part{at + "weight"};
      part.frame = i + 1;
      slots.fill(*parts[i], {part}, {out, in, 3, 3, 3});
    }
    slots.fill(bias, at + "bias", {out});
  }
  template <class B>
  void conv(blocks::Slots& slots, const std::string& module, std::int64_t out, std::int64_t in) {
    filter(slots, module, B::first, B::second, B::third, B::bias, out, in);
  }

  // In the original order: residual blocks, several or one that changes the number of channels, and
  // between them what changes the size. widening: by how much that raises the channels.
  template <class R>
  void add_steps(const std::string& name, std::int64_t widening) {
    const std::string tail = widening > 1 ? ".conv.conv.weight" : ".conv.weight";
    for (int i = 0;; ++i) {
      const std::string module = name + std::to_string(i);
      const auto has = [&](const std::string& more) {
        return file_.has(names_.one(module + more));
      };
      if (has(".res_blocks.0.conv1.conv.weight")) {
        for (int k = 0; has(".res_blocks." + std::to_string(k) + ".conv1.conv.weight"); ++k)
          add_resnet(module + ".res_blocks." + std::to_string(k));
      } else if (has(".conv1.conv.weight")) {
        add_resnet(module);
      } else if (has(tail)) {
        add_resample<R>(module, widening);
      } else {
        return;
      }
    }
  }

  void add_resnet(const std::string& module) {
    using B = LtxvVaeResnet;
    const std::int64_t out = size_of(module + ".conv1", 0);
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_).set(B::causal, is_causal_);
    blocks::Slots slots(file_, block, module);
    filter(slots, module + ".conv1", B::first1, B::second1, B::third1, B::bias1, out, channels_);
    filter(slots, module + ".conv2", B::first2, B::second2, B::third2, B::bias2, out, out);
    if (out != channels_) {
      slots.fill(B::norm, names_.one(module + ".norm3.norm.weight"), {channels_});
      slots.fill(B::norm_bias, names_.one(module + ".norm3.norm.bias"), {channels_});
      Part point{names_.one(module + ".conv_shortcut.weight")};
      point.frame = 1;
      slots.fill(B::shortcut, {point}, {out, channels_, 1, 1, 1});
      slots.fill(B::shortcut_bias, names_.one(module + ".conv_shortcut.bias"), {out});
    }
    hidden_ = block[B::out];
    channels_ = out;
  }

  template <class R>
  void add_resample(const std::string& module, std::int64_t widening) {
    Block block = graph_.add<R>(module);
    block.link(R::hidden, hidden_);
    blocks::Slots slots(file_, block, module);
    conv<R>(slots, widening > 1 ? module + ".conv" : module, widening * channels_, channels_);
    hidden_ = block[R::out];
    ++resamples_;
  }

  const Checkpoint& file_;
  const LtxvVaeNames& names_;
  Blocks& graph_;
  std::int64_t channels_ = 0;
  bool is_causal_ = false;
  int resamples_ = 0;
  Source hidden_;
};

void build_ltxv_side(const Checkpoint& file, Blocks& graph, VaeSide side) {
  const std::optional<LtxvVaeNames> names = LtxvVaeNames::find(file, side);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no autoencoder of LTX-Video");
  if (const char* later = names->of_later_version())
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": this autoencoder of LTX-Video is of " + later +
                    ", which is not supported. Use that of ltx-video-2b-v0.9.safetensors.");
  LtxvVaeBuilder builder(file, *names, graph);
  const std::int64_t channels = side == VaeSide::decoder ? builder.decode() : builder.encode();
  graph.setting("family", "autoencoder_ltxv");
  graph.setting("scaling_factor", 1.0);
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", channels);
  graph.setting("downscale", std::int64_t{4} << builder.resamples());
  graph.setting("frame_downscale", std::int64_t{1} << builder.resamples());
  graph.setting("pixel_channels", std::int64_t{3});
}

}  // namespace

int AutoencoderLtxvDecoder::match(const Checkpoint& file, const Value&) {
  return LtxvVaeNames::find(file, VaeSide::decoder) ? 100 : 0;
}
void AutoencoderLtxvDecoder::build(const Checkpoint& file, const Value&, Blocks& graph) {
  build_ltxv_side(file, graph, VaeSide::decoder);
}

int AutoencoderLtxvEncoder::match(const Checkpoint& file, const Value&) {
  return LtxvVaeNames::find(file, VaeSide::encoder) ? 100 : 0;
}
void AutoencoderLtxvEncoder::build(const Checkpoint& file, const Value&, Blocks& graph) {
  build_ltxv_side(file, graph, VaeSide::encoder);
}

}  // namespace heddle::vae
