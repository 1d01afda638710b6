#include "hunyuan15_upsampler.h"

#include <string>

#include "autoencoder_hunyuan15.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

constexpr const char* kOf720 = "blocks.0.block.0.conv.weight";
constexpr const char* kOf1080 = "up.0.block.0.conv1.conv.weight";

class Hunyuan15UpBuilder {
 public:
  Hunyuan15UpBuilder(const Checkpoint& file, Blocks& graph) : file_(file), graph_(graph) {}

  void run() {
    const bool is_plain = file_.has(kOf720);
    const std::string in = is_plain ? "in_conv.conv" : "conv_in.conv",
                      out = is_plain ? "out_conv.conv" : "conv_out.conv";
    latent_ = file_.size(in + ".weight", 1);
    add_in(in, !is_plain);
    if (is_plain)
      for (int i = 0; i < blocks::layer_count(file_, "blocks."); ++i)
        add_residual("blocks." + std::to_string(i));
    else
      for (int level = 0; level < blocks::layer_count(file_, "up."); ++level) {
        const std::string path = "up." + std::to_string(level) + ".block.";
        for (int i = 0; i < blocks::layer_count(file_, path); ++i)
          add_resnet(path + std::to_string(i));
      }
    add_out(out, !is_plain);
    graph_.setting("family", "hunyuan15_latent_upsampler");
    graph_.setting("latent_channels", latent_);
    for (const char* key : {"times", "step", "frame_times"}) graph_.setting(key, std::int64_t{1});
    graph_.setting("latent_scale", kHunyuan15Scale);
  }

 private:
  void conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(filter, module + ".weight", {out, in, 3, 3, 3});
    slots.fill(bias, module + ".bias", {out});
  }
  std::int64_t rows(const std::string& module) const { return file_.size(module + ".weight", 0); }

  void add_in(const std::string& module, bool repeats) {
    using B = Hunyuan15UpIn;
    channels_ = rows(module);
    if (repeats && (latent_ < 1 || channels_ % latent_ != 0))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + module + ".weight' makes " + std::to_string(channels_) +
                      " channels of " + std::to_string(latent_) +
                      ", which are no multiple. The file is damaged or of another model.");
    Block block = graph_.add<B>("in");
    block.link(B::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT)).set(B::repeats, repeats);
    blocks::Slots slots(file_, block, "in");
    conv(slots, B::conv, B::conv_bias, module, channels_, latent_);
    hidden_ = block[B::out];
  }

  void add_residual(const std::string& module) {
    using B = Hunyuan15UpResidual;
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, module);
    const auto layer = [&](const Weight& filter, const Weight& bias, const char* number) {
      conv(slots, filter, bias, module + ".block." + number + ".conv", channels_, channels_);
    };
    layer(B::conv1, B::conv1_bias, "0");
    layer(B::conv2, B::conv2_bias, "2");
    layer(B::conv3, B::conv3_bias, "4");
    hidden_ = block[B::out];
  }

  void add_resnet(const std::string& module) {
    using B = Hunyuan15UpResnet;
    const std::int64_t made = rows(module + ".conv1.conv");
    Block block = graph_.add<B>(module);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, module);
    slots.fill(B::norm1, module + ".norm1.gamma", {channels_, 1, 1, 1});
    conv(slots, B::conv1, B::conv1_bias, module + ".conv1.conv", made, channels_);
    slots.fill(B::norm2, module + ".norm2.gamma", {made, 1, 1, 1});
    conv(slots, B::conv2, B::conv2_bias, module + ".conv2.conv", made, made);
    if (made != channels_) {
      Part filter{module + ".nin_shortcut.weight"};
      filter.frame = 1;
      slots.fill(B::shortcut, {filter}, {made, channels_, 1, 1, 1});
      slots.fill(B::shortcut_bias, module + ".nin_shortcut.bias", {made});
    }
    channels_ = made;
    hidden_ = block[B::out];
  }

  void add_out(const std::string& module, bool is_normed) {
    using B = Hunyuan15UpOut;
    Block block = graph_.add<B>("out");
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, "out");
    if (is_normed) slots.fill(B::norm, "norm_out.gamma", {channels_, 1, 1, 1});
    conv(slots, B::conv, B::conv_bias, module, latent_, channels_);
    graph_.output("larger", block[B::larger]);
  }

  const Checkpoint& file_;
  Blocks& graph_;
  std::int64_t channels_ = 0, latent_ = 0;
  Source hidden_;
};

}  // namespace

int Hunyuan15Upsampler::match(const Checkpoint& file, const Value&) {
  const bool is_plain = file.has(kOf720) && file.has("in_conv.conv.weight");
  return is_plain || (file.has(kOf1080) && file.has("conv_in.conv.weight")) ? 100 : 0;
}

void Hunyuan15Upsampler::build(const Checkpoint& file, const Value&, Blocks& graph) {
  Hunyuan15UpBuilder(file, graph).run();
}

}  // namespace heddle::vae
