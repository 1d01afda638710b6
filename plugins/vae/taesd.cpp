#include "taesd.h"

#include "halvings.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

// Where the modules of one side stand, and the number of the first one that has weights. Decoders
// begin with a limit, which only the original files count.
struct TaesdPlace {
  std::string prefix;
  int first = 0;
};

// The second module of a decoder is an activation, that of an encoder a residual block.
std::optional<TaesdPlace> taesd_place(const Checkpoint& file, bool is_decoder) {
  const char* const joined = is_decoder ? "taesd_decoder." : "taesd_encoder.";
  const char* const diffusers = is_decoder ? "decoder.layers." : "encoder.layers.";
  for (const TaesdPlace& place : {TaesdPlace{joined, is_decoder ? 1 : 0},
                                  TaesdPlace{"", is_decoder ? 1 : 0}, TaesdPlace{diffusers, 0}}) {
    const std::string block =
        place.prefix + std::to_string(place.first + (is_decoder ? 2 : 1)) + ".conv.0.weight";
    if (file.has(place.prefix + std::to_string(place.first) + ".weight") && file.has(block))
      return place;
  }
  return std::nullopt;
}

class TaesdBuilder {
 public:
  TaesdBuilder(const Checkpoint& file, const Value& config, const TaesdPlace& place, Blocks& graph)
      : file_(file),
        place_(place),
        graph_(graph),
        scale_(config.get<double>("scaling_factor", 1)),
        shift_(config.get<double>("shift_factor", 0)),
        width_(file.size(module(place.first) + ".weight", 0)),
        last_(blocks::layer_count(file, place.prefix) - 1) {}

  void decode() {
    using I = TaesdLatentIn;
    const std::int64_t channels = file_.size(module(place_.first) + ".weight", 1);
    Block in = graph_.add<I>("in");
    in.link(I::z, graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH))
        .set(I::scale, scale_)
        .set(I::shift, shift_);
    conv(in, "in", I::conv, &I::conv_bias, place_.first, width_, channels);
    hidden_ = in[I::out];
    add_between<TaesdUpsample>();
    using O = TaesdImageOut;
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_);
    conv(out, "out", O::conv, &O::conv_bias, last_, 3, width_);
    graph_.output("image", out[O::image]);
    add_settings(channels);
  }

  void encode() {
    using I = TaesdImageIn;
    Block in = graph_.add<I>("in");
    in.link(I::image, graph_.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    conv(in, "in", I::conv, &I::conv_bias, place_.first, width_, 3);
    hidden_ = in[I::out];
    add_between<TaesdDownsample>();
    using O = TaesdLatentOut;
    const std::int64_t channels = file_.size(module(last_) + ".weight", 0);
    Block out = graph_.add<O>("out");
    out.link(O::hidden, hidden_).set(O::scale, scale_).set(O::shift, shift_);
    conv(out, "out", O::conv, &O::conv_bias, last_, channels, width_);
    graph_.output("mean", out[O::mean]);
    add_settings(channels);
  }

 private:
  std::string module(int index) const { return place_.prefix + std::to_string(index); }

  void conv(Block& block, const std::string& path, const Weight& filter, const Weight* bias,
            int index, std::int64_t out, std::int64_t in) {
    blocks::Slots slots(file_, block, path);
    slots.fill(filter, module(index) + ".weight", {out, in, 3, 3});
    if (bias != nullptr) slots.fill(*bias, module(index) + ".bias", {out});
  }

  // Residual blocks, and convolutions that change the size: `Resample`.
  template <class Resample>
  void add_between() {
    for (int i = place_.first + 1; i < last_; ++i) {
      const std::string path = "layer." + std::to_string(i);
      if (file_.has(module(i) + ".conv.0.weight")) {
        add_residual(path, module(i));
      } else if (file_.has(module(i) + ".weight")) {
        Block block = graph_.add<Resample>(path);
        block.link(Resample::hidden, hidden_);
        conv(block, path, Resample::conv, nullptr, i, width_, width_);
        hidden_ = block[Resample::out];
        ++resamples_;
      }
    }
  }

  void add_residual(const std::string& path, const std::string& name) {
    using R = TaesdResidual;
    const std::int64_t out = file_.size(name + ".conv.0.weight", 0);
    Block block = graph_.add<R>(path);
    block.link(R::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    const Weight* const filters[] = {&R::conv1, &R::conv2, &R::conv3};
    const Weight* const biases[] = {&R::conv1_bias, &R::conv2_bias, &R::conv3_bias};
    for (int i = 0; i < 3; ++i) {
      const std::string at = name + ".conv." + std::to_string(2 * i);
      slots.fill(*filters[i], at + ".weight", {out, i == 0 ? width_ : out, 3, 3});
      slots.fill(*biases[i], at + ".bias", {out});
    }
    if (out != width_) slots.fill(R::skip, name + ".skip.weight", {out, width_, 1, 1});
    hidden_ = block[R::out];
    width_ = out;
  }

  void add_settings(std::int64_t channels) {
    graph_.setting("family", "taesd");
    graph_.setting("scaling_factor", scale_);
    graph_.setting("shift_factor", shift_);
    graph_.setting("latent_channels", channels);
    graph_.setting("downscale", cell_side(file_, resamples_));
  }

  const Checkpoint& file_;
  const TaesdPlace& place_;
  Blocks& graph_;
  double scale_, shift_;
  std::int64_t width_;
  int last_;  // the number of the last module
  int resamples_ = 0;
  Source hidden_;
};

TaesdPlace known_place(const Checkpoint& file, bool is_decoder) {
  const std::optional<TaesdPlace> place = taesd_place(file, is_decoder);
  if (!place) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no TAESD");
  return *place;
}

}  // namespace

int TaesdDecoder::match(const Checkpoint& file, const Value&) {
  return taesd_place(file, true) ? 100 : 0;
}
void TaesdDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const TaesdPlace place = known_place(file, true);
  TaesdBuilder(file, config, place, graph).decode();
}

int TaesdEncoder::match(const Checkpoint& file, const Value&) {
  return taesd_place(file, false) ? 100 : 0;
}
void TaesdEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const TaesdPlace place = known_place(file, false);
  TaesdBuilder(file, config, place, graph).encode();
}

}  // namespace heddle::vae
