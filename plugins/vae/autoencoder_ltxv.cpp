#include "autoencoder_ltxv.h"

#include <deque>
#include <optional>
#include <string_view>

#include "autoencoder_ltxv_names.h"
#include "autoencoder_ltxv_options.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// What a change of size does along each axis, and to how many channels.
struct LtxvResample {
  std::int64_t frames = 2, side = 2, channels = 0;
};

// Builds one side's graph: keeps the running output and its number of channels.
class LtxvVaeBuilder {
 public:
  LtxvVaeBuilder(const Checkpoint& file, const LtxvVaeNames& names, const LtxvVaeOptions& options,
                 Blocks& graph)
      : file_(file), names_(names), o_(options), graph_(graph) {}

  // Both return the number of latent channels.
  std::int64_t decode() {
    using B = LtxvVaeLatentIn;
    is_causal_ = o_.is_causal;
    const std::int64_t latent = size_of("conv_in", 1);
    channels_ = size_of("conv_in", 0);
    Block in = graph_.add<B>("in");
    // No HEDDLE_INPUT_BATCH: what is made has a row for each frame, not for each video.
    in.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT));
    in.set(B::causal, is_causal_).set(B::mirrors, o_.mirrors);
    if (o_.reads_level) in.link(B::noise, noise_input("noise")).set(B::noise_share, o_.noise_share);
    blocks::Slots slots(file_, in, "in");
    statistics<B>(slots, latent);
    conv<B>(slots, "conv_in", channels_, latent);
    hidden_ = in[B::out];
    for (int i = 0; add_step("up_blocks.", i, "conv_out"); ++i) continue;
    add_image_out();
    return latent;
  }

  std::int64_t encode() {
    using B = LtxvVaeImageIn;
    is_causal_ = true;
    channels_ = size_of("conv_in", 0);
    Block in = graph_.add<B>("in");
    in.link(B::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT));
    in.set(B::mirrors, o_.mirrors);
    blocks::Slots slots(file_, in, "in");
    conv<B>(slots, "conv_in", channels_, kPixels);
    hidden_ = in[B::out];
    for (int i = 0; add_step("down_blocks.", i, "conv_out"); ++i) continue;
    using O = LtxvVaeLatentOut;
    const std::int64_t moments = size_of("conv_out", 0), latent = moments - 1;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_).set(O::mirrors, o_.mirrors);
    blocks::Slots out_slots(file_, out, "out");
    statistics<O>(out_slots, latent);
    conv<O>(out_slots, "conv_out", moments, channels_);
    graph_.output("mean", out[O::out]);
    graph_.output("logvar", out[O::logvar]);
    return latent;
  }

  std::int64_t downscale() const { return 4 * sides_; }
  std::int64_t frame_downscale() const { return frames_; }
  // Of a decoder that is told a noise level: planes of noise of each size.
  const std::vector<std::int64_t>& noise_planes() const { return planes_; }

 private:
  static constexpr std::int64_t kPixels = 3 * 4 * 4;

  std::string tensor(const std::string& module, const char* kind) const {
    return names_.one(module + kind);
  }
  bool has(const std::string& name) const { return file_.has(names_.one(name)); }
  std::int64_t size_of(const std::string& module, std::uint32_t axis) const {
    return file_.size(names_.one(module + ".conv.weight"), axis);
  }
  Source noise_input(const std::string& name) {
    input_names_.push_back(name);
    return graph_.input(input_names_.back().c_str(),
                        HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
  }

  template <class B>
  void statistics(blocks::Slots& slots, std::int64_t latent) {
    slots.fill(B::mean, names_.means(), {latent});
    slots.fill(B::deviation, names_.deviations(), {latent});
  }

  void filter(blocks::Slots& slots, const std::string& module, const Weight& conv,
              const Weight& bias, std::int64_t out, std::int64_t in) {
    const std::string at = names_.one(module + ".conv.");
    slots.fill(conv, at + "weight", {out, in, 3, 3, 3});
    slots.fill(bias, at + "bias", {out});
  }
  template <class B>
  void conv(blocks::Slots& slots, const std::string& module, std::int64_t out, std::int64_t in) {
    filter(slots, module, B::conv, B::bias, out, in);
  }

  void add_image_out() {
    using O = LtxvVaeImageOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_).set(O::causal, is_causal_).set(O::mirrors, o_.mirrors);
    blocks::Slots slots(file_, out, "out");
    if (has("last_scale_shift_table")) {
      out.link(O::embedding, embed_level("out.level", "last_time_embedder", 2 * channels_));
      slots.fill(O::table, names_.one("last_scale_shift_table"), {2, channels_});
    }
    conv<O>(slots, "conv_out", kPixels, channels_);
    graph_.output("image", out[O::image]);
  }

  // In the original order: residual blocks, several or one that changes the number of channels, and
  // between them what changes the size. False where there is no such step. behind: the convolution
  // that follows the last one.
  bool add_step(const std::string& side, int number, const std::string& behind) {
    const std::string module = side + std::to_string(number), first = module + ".res_blocks.0";
    if (has(first + ".conv1.conv.weight")) {
      Source embedding;
      const bool is_told = has(module + ".time_embedder.timestep_embedder.linear_1.weight");
      if (is_told)
        embedding = embed_level(module + ".level", module + ".time_embedder", 4 * channels_);
      for (int k = 0; has(module + ".res_blocks." + std::to_string(k) + ".conv1.conv.weight"); ++k)
        add_resnet(module + ".res_blocks." + std::to_string(k), is_told ? &embedding : nullptr);
    } else if (has(module + ".conv1.conv.weight")) {
      add_resnet(module, nullptr);
    } else if (has(module + ".conv.conv.weight")) {
      const LtxvResample change = resample_of(side, number, behind);
      side == "up_blocks." ? add_upsample(module, std::size_t(number), change)
                           : add_gather(module, change);
    } else if (has(module + ".conv.weight")) {
      add_downsample(module);
    } else {
      return false;
    }
    return true;
  }

  Source embed_level(const std::string& path, const std::string& module, std::int64_t width) {
    using B = LtxvVaeTime;
    Block block = graph_.add<B>(path);
    block.set(B::level, o_.level).set(B::scale, o_.level_scale);
    blocks::Slots slots(file_, block, path);
    const std::string at = module + ".timestep_embedder.";
    const std::int64_t waves = file_.size(names_.one(at + "linear_1.weight"), 1);
    slots.fill(B::in, names_.one(at + "linear_1.weight"), {width, waves});
    slots.fill(B::in_bias, names_.one(at + "linear_1.bias"), {width});
    slots.fill(B::last, names_.one(at + "linear_2.weight"), {width, width});
    slots.fill(B::last_bias, names_.one(at + "linear_2.bias"), {width});
    return block[B::out];
  }

  void add_resnet(const std::string& module, const Source* embedding) {
    using B = LtxvVaeResnet;
    const std::int64_t out = size_of(module + ".conv1", 0);
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_).set(B::causal, is_causal_).set(B::mirrors, o_.mirrors);
    blocks::Slots slots(file_, block, module);
    if (embedding != nullptr) {
      block.link(B::embedding, *embedding);
      slots.fill(B::table, tensor(module, ".scale_shift_table"), {4, channels_});
    }
    if (has(module + ".per_channel_scale1")) add_noise(module, block, slots, out);
    filter(slots, module + ".conv1", B::conv1, B::bias1, out, channels_);
    filter(slots, module + ".conv2", B::conv2, B::bias2, out, out);
    if (out != channels_) add_shortcut(module, slots, out);
    hidden_ = block[B::out];
    channels_ = out;
  }

  void add_noise(const std::string& module, Block& block, blocks::Slots& slots, std::int64_t out) {
    using B = LtxvVaeResnet;
    slots.fill(B::scale1, tensor(module, ".per_channel_scale1"), {out, 1, 1});
    slots.fill(B::scale2, tensor(module, ".per_channel_scale2"), {out, 1, 1});
    while ((std::int64_t{1} << planes_.size()) <= sides_) planes_.push_back(0);
    if (planes_.back() == 0) noise_ = noise_input("noise." + std::to_string(planes_.size() - 1));
    block.link(B::noise, noise_).set(B::plane, planes_.back());
    planes_.back() += 2;
  }

  // The norm and the filter are called differently in the versions' files.
  void add_shortcut(const std::string& module, blocks::Slots& slots, std::int64_t out) {
    using B = LtxvVaeResnet;
    slots.fill(B::norm, tensor(module, ".norm3.norm.weight"), {channels_});
    slots.fill(B::norm_bias, tensor(module, ".norm3.norm.bias"), {channels_});
    Part point{tensor(module, ".conv_shortcut.weight")};
    point.frame = 1;
    slots.fill(B::shortcut, {point}, {out, channels_, 1, 1, 1});
    slots.fill(B::shortcut_bias, tensor(module, ".conv_shortcut.bias"), {out});
  }

  // From the channels that follow: those of the next filter.
  LtxvResample resample_of(const std::string& side, int number, const std::string& behind) {
    const std::string module = side + std::to_string(number),
                      next = side + std::to_string(number + 1);
    const std::int64_t made = size_of(module + ".conv", 0);
    LtxvResample change;
    change.channels =
        size_of(has(next + ".res_blocks.0.conv1.conv.weight") ? next + ".res_blocks.0.conv1"
                : has(next + ".conv1.conv.weight")            ? next + ".conv1"
                                                              : behind,
                1);
    const bool is_up = side == "up_blocks.";
    const std::int64_t whole = is_up ? made : change.channels,
                       part = is_up ? change.channels : made;
    const std::int64_t count = part > 0 && whole % part == 0 ? whole / part : 0;
    if (count == 2)
      change.side = 1;
    else if (count == 4)
      change.frames = 1;
    else if (count != 8)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + names_.one(module + ".conv.conv.weight") + "' makes " +
                      std::to_string(made) + " channels where " + std::to_string(change.channels) +
                      " follow. One has to be 2, 4 or 8 times the other. The file is damaged or of "
                      "another model.");
    if (channels_ * count % change.channels != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + names_.one(module + ".conv.conv.weight") + "' reads " +
                      std::to_string(channels_) + " channels, which do not divide into " +
                      std::to_string(change.channels) +
                      ". The file is damaged or of another model.");
    return change;
  }

  void add_upsample(const std::string& module, std::size_t number, const LtxvResample& change) {
    using B = LtxvVaeUpsample;
    const std::int64_t count = change.frames * change.side * change.side;
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_).set(B::causal, is_causal_).set(B::mirrors, o_.mirrors);
    block.set(B::frames, change.frames).set(B::side, change.side);
    // Where nothing is told: decoders that halve the channels do.
    const bool adds = o_.residual(number).value_or(change.channels < channels_);
    if (adds && (channels_ % count != 0 || change.channels % (channels_ / count) != 0))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": " + module + " shall add " + std::to_string(channels_) +
                      " channels of its input to " + std::to_string(change.channels) +
                      " of twice the size, which do not divide. Check the config in the file's "
                      "metadata.");
    block.set(B::residual, adds);
    blocks::Slots slots(file_, block, module);
    conv<B>(slots, module + ".conv", count * change.channels, channels_);
    finish(block[B::out], change);
  }

  void add_gather(const std::string& module, const LtxvResample& change) {
    using B = LtxvVaeGather;
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_).set(B::mirrors, o_.mirrors);
    block.set(B::frames, change.frames).set(B::side, change.side);
    blocks::Slots slots(file_, block, module);
    conv<B>(slots, module + ".conv", change.channels / (change.frames * change.side * change.side),
            channels_);
    finish(block[B::out], change);
  }

  void add_downsample(const std::string& module) {
    using B = LtxvVaeDownsample;
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_).set(B::mirrors, o_.mirrors);
    blocks::Slots slots(file_, block, module);
    conv<B>(slots, module, channels_, channels_);
    finish(block[B::out], {2, 2, channels_});
  }

  void finish(const Source& hidden, const LtxvResample& change) {
    hidden_ = hidden;
    channels_ = change.channels;
    frames_ *= change.frames;
    sides_ *= change.side;
  }

  const Checkpoint& file_;
  const LtxvVaeNames& names_;
  const LtxvVaeOptions& o_;
  Blocks& graph_;
  std::int64_t channels_ = 0, frames_ = 1, sides_ = 1;
  bool is_causal_ = false;
  Source hidden_, noise_;
  std::vector<std::int64_t> planes_;
  std::deque<std::string> input_names_;  // which links point into
};

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
  LtxvVaeBuilder builder(file, *names, options, graph);
  const std::int64_t channels = side == VaeSide::decoder ? builder.decode() : builder.encode();
  graph.setting("family", "autoencoder_ltxv");
  graph.setting("scaling_factor", 1.0);
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", channels);
  graph.setting("downscale", builder.downscale());
  graph.setting("frame_downscale", builder.frame_downscale());
  graph.setting("pixel_channels", std::int64_t{3});
  add_statistics(file, *names, channels, graph);
  if (!options.reads_level) return;
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
