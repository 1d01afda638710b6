#include "latent_upsampler.h"

#include <cmath>
#include <optional>
#include <string>

#include "plugins/blocks/config_inside.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

class LatentUpBuilder {
 public:
  LatentUpBuilder(const Checkpoint& file, std::string prefix, double scale, Blocks& graph)
      : file_(file), prefix_(std::move(prefix)), scale_(scale), graph_(graph) {}

  void run() {
    if (file_.info(at("initial_conv.weight")).rank != 5)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() +
                                          ": this upscale model works frame by frame, which is not "
                                          "supported. Use one with filters over frames.");
    channels_ = file_.size(at("initial_conv.weight"), 0);
    latent_ = file_.size(at("initial_conv.weight"), 1);
    using B = LatentUpIn;
    Block in = graph_.add<B>("in");
    in.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT));
    blocks::Slots slots(file_, in, "in");
    conv(slots, "initial_conv", {&B::first, &B::second, &B::third, &B::bias}, channels_, latent_);
    norm(slots, "initial_norm", B::norm, B::norm_bias);
    hidden_ = in[B::out];
    add_resnets("res_blocks.");
    add_growth();
    add_resnets("post_upsample_res_blocks.");
    using O = LatentUpOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    blocks::Slots out_slots(file_, out, "out");
    conv(out_slots, "final_conv", {&O::first, &O::second, &O::third, &O::bias}, latent_, channels_);
    graph_.output("larger", out[O::larger]);
    graph_.setting("family", "ltxv_latent_upsampler");
    graph_.setting("latent_channels", latent_);
    graph_.setting("times", times_);
    graph_.setting("step", step_);
    graph_.setting("frame_times", frame_times_);
  }

 private:
  std::string at(const std::string& name) const { return prefix_ + name; }

  struct ConvSlots {
    const Weight *first, *second, *third, *bias;
  };
  void conv(blocks::Slots& slots, const std::string& module, const ConvSlots& to, std::int64_t out,
            std::int64_t in) {
    const Weight* const parts[] = {to.first, to.second, to.third};
    for (std::int64_t i = 0; i < 3; ++i) {
      Part part{at(module + ".weight")};
      part.frame = i + 1;
      slots.fill(*parts[i], {part}, {out, in, 3, 3, 3});
    }
    slots.fill(*to.bias, at(module + ".bias"), {out});
  }
  void norm(blocks::Slots& slots, const std::string& module, const Weight& weight,
            const Weight& bias) {
    slots.fill(weight, at(module + ".weight"), {channels_});
    slots.fill(bias, at(module + ".bias"), {channels_});
  }

  void add_resnets(const std::string& path) {
    using B = LatentUpResnet;
    const int count = blocks::layer_count(file_, at(path));
    for (int i = 0; i < count; ++i) {
      const std::string module = path + std::to_string(i);
      Block block = graph_.add<B>(module);
      block.link(B::hidden, hidden_);
      blocks::Slots slots(file_, block, module);
      conv(slots, module + ".conv1", {&B::first1, &B::second1, &B::third1, &B::bias1}, channels_,
           channels_);
      norm(slots, module + ".norm1", B::norm1, B::norm_bias1);
      conv(slots, module + ".conv2", {&B::first2, &B::second2, &B::third2, &B::bias2}, channels_,
           channels_);
      norm(slots, module + ".norm2", B::norm2, B::norm_bias2);
      hidden_ = block[B::out];
    }
  }

  // The kind follows from the filter: over frames, or of one, to so many channels.
  void add_growth() {
    const bool is_rational = file_.has(at("upsampler.conv.weight"));
    const std::string module = is_rational ? "upsampler.conv" : "upsampler.0";
    const std::int64_t made = file_.size(at(module + ".weight"), 0);
    if (file_.info(at(module + ".weight")).rank == 5) return add_frames(module, made);
    times_ = std::int64_t(std::llround(std::sqrt(double(made) / double(channels_))));
    if (times_ < 1 || times_ * times_ * channels_ != made)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + at(module + ".weight") + "' makes " +
                      std::to_string(made) + " channels of " + std::to_string(channels_) +
                      ", which are no square. The file is damaged or of another model.");
    const double step = is_rational && scale_ > 0 ? double(times_) / scale_ : 1;
    step_ = std::int64_t(std::llround(step));
    if (step_ < 1 || std::abs(step - double(step_)) > 1e-6)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": rational_spatial_scale is " +
                                          std::to_string(scale_) + ", of which " +
                                          std::to_string(times_) + " is no multiple.");
    using B = LatentUpGrow;
    Block block = graph_.add<B>("grow");
    block.link(B::hidden, hidden_).set(B::times, times_).set(B::step, step_);
    blocks::Slots slots(file_, block, "grow");
    slots.fill(B::conv, at(module + ".weight"), {made, channels_, 3, 3});
    slots.fill(B::bias, at(module + ".bias"), {made});
    hidden_ = block[B::out];
  }

  void add_frames(const std::string& module, std::int64_t made) {
    if (made != 2 * channels_)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() +
                                          ": this upscale model makes frames and sides larger at "
                                          "once, which is not supported.");
    frame_times_ = 2;
    using B = LatentUpFrames;
    Block block = graph_.add<B>("grow");
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, "grow");
    conv(slots, module, {&B::first, &B::second, &B::third, &B::bias}, made, channels_);
    hidden_ = block[B::out];
  }

  const Checkpoint& file_;
  std::string prefix_;
  double scale_;
  Blocks& graph_;
  std::int64_t channels_ = 0, latent_ = 0, times_ = 1, step_ = 1, frame_times_ = 1;
  Source hidden_;
};

}  // namespace

int LatentUpsampler::match(const Checkpoint& file, const Value&) {
  return blocks::prefix_before(file, "post_upsample_res_blocks.0.conv2.bias") ? 100 : 0;
}

void LatentUpsampler::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const auto prefix = blocks::prefix_before(file, "post_upsample_res_blocks.0.conv2.bias");
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no upscale model of LTX-Video's latents");
  // That of 2.5's file is a record of the config.
  const Value inside = blocks::config_inside(file), part = inside.field("upsampler"),
              &said = part.is(HEDDLE_KIND_RECORD) ? part : inside;
  const double told = said.get<double>("rational_spatial_scale", 0);
  LatentUpBuilder(file, *prefix, config.get<double>("rational_spatial_scale", told), graph).run();
}

}  // namespace heddle::vae
