#include "esrgan.h"

#include "plugins/blocks/slots.h"
#include "upscaler_shape.h"

namespace heddle::upscalers {
namespace {

// The three ways in which files name the same modules: those of ESRGAN's first code, of the models
// trained later with it (BSRGAN, RealSR), of Real-ESRGAN.
class EsrganNames {
 public:
  static std::optional<EsrganNames> find(const Checkpoint& file) {
    if (file.has("model.0.weight") && file.has("model.1.sub.0.RDB1.conv1.0.weight"))
      return EsrganNames(file, Style::numbered);
    if (!file.has("conv_first.weight") || !file.has("conv_last.weight")) return std::nullopt;
    if (file.has("RRDB_trunk.0.RDB1.conv1.weight")) return EsrganNames(file, Style::trunk);
    if (file.has("body.0.rdb1.conv1.weight")) return EsrganNames(file, Style::body);
    return std::nullopt;
  }

  int depth() const { return depth_; }
  int upsamples() const { return upsamples_; }
  std::string first() const { return style_ == Style::numbered ? "model.0" : "conv_first"; }
  // block, dense, conv: from 0, 1 and 1.
  std::string dense_conv(int block, int dense, int conv) const {
    const std::string at = std::to_string(block), in = std::to_string(dense);
    const std::string name = "conv" + std::to_string(conv);
    if (style_ == Style::numbered) return "model.1.sub." + at + ".RDB" + in + "." + name + ".0";
    if (style_ == Style::trunk) return "RRDB_trunk." + at + ".RDB" + in + "." + name;
    return "body." + at + ".rdb" + in + "." + name;
  }
  std::string trunk() const {
    if (style_ == Style::numbered) return "model.1.sub." + std::to_string(depth_);
    return style_ == Style::trunk ? "trunk_conv" : "conv_body";
  }
  std::string upsample(int index) const {  // from 0
    const std::string number =
        std::to_string(style_ == Style::numbered ? 3 * index + 3 : index + 1);
    if (style_ == Style::numbered) return "model." + number;
    return (style_ == Style::trunk ? "upconv" : "conv_up") + number;
  }
  std::string high() const {
    if (style_ == Style::numbered) return "model." + std::to_string(3 * upsamples_ + 2);
    return style_ == Style::trunk ? "HRconv" : "conv_hr";
  }
  std::string last() const {
    if (style_ == Style::numbered) return "model." + std::to_string(3 * upsamples_ + 4);
    return "conv_last";
  }

 private:
  enum class Style { numbered, trunk, body };
  EsrganNames(const Checkpoint& file, Style style) : style_(style) {
    while (file.has(dense_conv(depth_, 1, 1) + ".weight")) ++depth_;
    // Of numbered files the last module tells, as upsampling and activations have numbers, too.
    const int modules = style == Style::numbered ? blocks::layer_count(file, "model.") : 0;
    if (style == Style::numbered)
      upsamples_ = modules > 5 ? (modules - 5) / 3 : 0;
    else
      while (file.has(upsample(upsamples_) + ".weight")) ++upsamples_;
  }
  Style style_;
  int depth_ = 0, upsamples_ = 0;
};

class EsrganBuilder {
 public:
  EsrganBuilder(const Checkpoint& file, const EsrganNames& names, Blocks& graph)
      : file_(file),
        names_(names),
        graph_(graph),
        width_(file.size(names.first() + ".weight", 0)),
        inputs_(file.size(names.first() + ".weight", 1)),
        colours_(file.size(names.last() + ".weight", 0)) {}

  UpscalerShape build() {
    // Pixels in channels: four times, or sixteen times as many as come out.
    const std::int64_t unshuffle = inputs_ == 4 * colours_ ? 2 : inputs_ == 16 * colours_ ? 4 : 1;
    using I = EsrganIn;
    Block in = graph_.add<I>("in");
    in.link(I::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH))
        .set(I::unshuffle, unshuffle);
    conv(in, "in", I::conv, I::conv_bias, names_.first(), width_, inputs_);
    const Source first = in[I::out];
    Source hidden = first;
    for (int i = 0; i < names_.depth(); ++i) hidden = add_residual(i, hidden);
    using T = EsrganTrunk;
    Block trunk = graph_.add<T>("trunk");
    trunk.link(T::hidden, hidden).link(T::first, first);
    conv(trunk, "trunk", T::conv, T::conv_bias, names_.trunk(), width_, width_);
    hidden = trunk[T::out];
    for (int i = 0; i < names_.upsamples(); ++i) {
      using U = EsrganUpsample;
      const std::string path = "up." + std::to_string(i);
      Block up = graph_.add<U>(path);
      up.link(U::hidden, hidden);
      conv(up, path, U::conv, U::conv_bias, names_.upsample(i), width_, width_);
      hidden = up[U::out];
    }
    using O = EsrganOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden);
    conv(out, "out", O::conv, O::conv_bias, names_.high(), width_, width_);
    conv(out, "out", O::last, O::last_bias, names_.last(), colours_, width_);
    graph_.output("image", out[O::image]);
    std::int64_t enlarged = 1;
    for (int i = 0; i < names_.upsamples(); ++i) enlarged = enlarged_by(file_, enlarged, 2);
    if (enlarged % unshuffle != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": this ESRGAN makes pictures smaller");
    return {.scale = enlarged / unshuffle,
            .in_channels = inputs_ / (unshuffle * unshuffle),
            .out_channels = colours_,
            .minimum = unshuffle == 1 ? 2 : 4,
            .multiple = unshuffle == 1 ? 1 : 4};
  }

 private:
  Source add_residual(int index, const Source& begin) {
    using D = EsrganDense;
    const Weight* const filters[] = {&D::conv1, &D::conv2, &D::conv3, &D::conv4, &D::conv5};
    const Weight* const biases[] = {&D::conv1_bias, &D::conv2_bias, &D::conv3_bias, &D::conv4_bias,
                                    &D::conv5_bias};
    const std::int64_t growth = file_.size(names_.dense_conv(index, 1, 1) + ".weight", 0);
    Source hidden = begin;
    for (int dense = 1; dense <= 3; ++dense) {
      const std::string path = "body." + std::to_string(index) + "." + std::to_string(dense);
      Block block = graph_.add<D>(path);
      block.link(D::hidden, hidden);
      if (dense == 3) block.link(D::base, begin);
      for (int i = 0; i < 5; ++i)
        conv(block, path, *filters[i], *biases[i], names_.dense_conv(index, dense, i + 1),
             i == 4 ? width_ : growth, width_ + i * growth);
      hidden = block[D::out];
    }
    return hidden;
  }

  void conv(Block& block, const std::string& path, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t in) {
    blocks::Slots slots(file_, block, path);
    slots.fill(filter, module + ".weight", {out, in, 3, 3});
    slots.fill(bias, module + ".bias", {out});
  }

  const Checkpoint& file_;
  const EsrganNames& names_;
  Blocks& graph_;
  std::int64_t width_, inputs_, colours_;
};

}  // namespace

int Esrgan::match(const Checkpoint& file, const Value&) {
  return EsrganNames::find(file) ? 100 : 0;
}

void Esrgan::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::optional<EsrganNames> names = EsrganNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no ESRGAN");
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (file.name(i).find(".conv1x1.") != std::string::npos)
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": this is an ESRGAN+ ('" + file.name(i) +
                                          "'), which is not known yet. Take an ESRGAN or a "
                                          "Real-ESRGAN.");
  add_settings(graph, "esrgan", EsrganBuilder(file, *names, graph).build());
}

}  // namespace heddle::upscalers
