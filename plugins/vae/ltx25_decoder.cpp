#include "ltx25_decoder.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "neighbour_attention.h"
#include "plugins/blocks/config_inside.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

constexpr const char* kPixelLayer = "decoder.diff_blocks.0.attn.qkv.weight";

// What the tensors do not tell, as published.
struct Ltx25DecoderOptions {
  std::vector<Neighbourhood> sees{{3, 7, 7}, {3, 7, 7}, {3, 5, 5}, {3, 5, 5}};  // of each stage
  std::vector<Neighbourhood> strides{{1, 2, 2}, {2, 1, 1}, {2, 2, 2}, {2, 2, 2}};
  Neighbourhood pixels_see{11, 11, 11};
  double level = 1000;

  explicit Ltx25DecoderOptions(const Checkpoint& file) {
    const Value vae = blocks::config_inside(file).field("vae"), told = vae.field("decoder");
    const auto steps = told.get<std::int64_t>("default_num_inference_steps", 1);
    const auto makes = vae.get<std::string>("model_output_type", "x0");
    if (steps != 1 || makes != "x0")
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": its decoder takes " + std::to_string(steps) +
                                          " steps and predicts '" + makes +
                                          "'. One step that predicts pixels ('x0') is supported.");
    level = told.get<double>("timestep_scale_multiplier", level);
    read(file, told.field("stage_kernels"), sees);
    if (const Value one = told.field("stage5_kernel"); one.count() > 0)
      pixels_see = triple(file, one);
    const Value grown = told.field("upsamples");
    if (grown.count() == 0) return;
    strides.clear();
    for (std::uint32_t i = 0; i < grown.count(); ++i)
      strides.push_back(triple(file, grown.item(i).item(0)));
  }

 private:
  static Neighbourhood triple(const Checkpoint& file, const Value& list) {
    Neighbourhood three{};
    for (std::uint32_t i = 0; i < 3; ++i) {
      three[i] = i < list.count() ? list.item(i).as<std::int64_t>() : 0;
      if (three[i] < 1 || three[i] > 1024)
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    file.path() +
                        ", metadata 'config': vae.decoder lists strides or kernels with " +
                        std::to_string(three[i]) +
                        " along an axis. Each has three numbers from 1 to 1024.");
    }
    return three;
  }
  static void read(const Checkpoint& file, const Value& list, std::vector<Neighbourhood>& to) {
    if (list.count() == 0) return;
    to.clear();
    for (std::uint32_t i = 0; i < list.count(); ++i) to.push_back(triple(file, list.item(i)));
  }
};

class Ltx25DecoderBuilder {
 public:
  Ltx25DecoderBuilder(const Checkpoint& file, std::string prefix, Blocks& graph)
      : file_(file), at_(prefix + "decoder."), o_(file), graph_(graph) {
    for (const std::string& before : {prefix, at_})
      if (file.has(before + "per_channel_statistics.mean-of-means"))
        statistics_ = before + "per_channel_statistics.";
    stages_ = blocks::layer_count(file, at_ + "det_stages.");
    if (std::size_t(stages_) > o_.sees.size() || std::size_t(stages_) != o_.strides.size())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": its decoder has " + std::to_string(stages_) +
                      " stages, its config tells of " + std::to_string(o_.strides.size()) +
                      ". The file is damaged or of another model.");
    check_no_gates();
    for (const Neighbourhood& stride : o_.strides) frames_ *= stride[0], side_ *= stride[1];
  }

  void run() {
    const Source z = graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT),
                 noise = graph_.input("cell_noise", HEDDLE_INPUT_LOOP_INVARIANT);
    Source hidden = add_begin(z);
    for (int stage = 0; stage < stages_; ++stage) hidden = add_stage(stage, hidden);
    graph_.output("image", add_pixels(hidden, noise));
    add_settings();
  }

 private:
  std::int64_t size(const std::string& name, std::uint32_t axis) const {
    return file_.size(at_ + name, axis);
  }
  void linear(blocks::Slots& slots, const Weight& weight, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(weight, at_ + module + ".weight", {out, in});
    slots.fill(bias, at_ + module + ".bias", {out});
  }
  // They were meant to be part of the matrices.
  void check_no_gates() const {
    for (const char* gate : {"gate_msa", "gate_mlp", "gate_ctx"})
      for (const char* block : {"diff_blocks.0.", "det_stages.0.0."})
        if (const std::string name = at_ + block + gate; file_.has(name))
          throw Error(HEDDLE_UNSUPPORTED,
                      file_.path() + ": tensor '" + name +
                          "': gates of residuals are not supported. Take the published file, "
                          "which has none.");
  }
  // Frames of the latent that stand behind the last one, so that all that are kept have neighbours.
  std::int64_t more_frames() const { return o_.sees.front()[0] / 2 * 2; }

  Source add_begin(const Source& z) {
    using B = Ltx25LatentIn;
    latent_ = size("conv_in.weight", 1), channels_ = size("conv_in.weight", 0);
    Block block = graph_.add<B>("in");
    block.link(B::z, z).set(B::more, more_frames());
    blocks::Slots slots(file_, block, "in");
    slots.fill(B::mean, statistics_ + "mean-of-means", {latent_});
    slots.fill(B::deviation, statistics_ + "std-of-means", {latent_});
    linear(slots, B::weight, B::bias, "conv_in", channels_, latent_);
    return block[B::out];
  }

  // What layers of both kinds have.
  void fill_layer(Block& block, const std::string& path, const std::string& module,
                  const Neighbourhood& sees) const {
    using B = Ltx25VaeLayer;
    const std::int64_t head = size(module + "attn.q_norm.weight", 0),
                       inner = size(module + "mlp.w_up.weight", 0), c = channels_;
    if (head < 4 || head % 4 != 0 || c % head != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + at_ + module + "' has " + std::to_string(c) +
                      " channels, which do not divide into heads of " + std::to_string(head) +
                      ". The file is damaged or of another model.");
    block.set(B::frames, sees[0]).set(B::rows, sees[1]).set(B::columns, sees[2]);
    blocks::Slots slots(file_, block, path);
    const auto weight = [&](const char* name) { return at_ + module + name + ".weight"; };
    slots.fill(B::norm1, weight("norm1"), {c});
    linear(slots, B::qkv, B::qkv_bias, module + "attn.qkv", 3 * c, c);
    slots.fill(B::q_norm, weight("attn.q_norm"), {head});
    slots.fill(B::k_norm, weight("attn.k_norm"), {head});
    linear(slots, B::proj, B::proj_bias, module + "attn.proj", c, c);
    slots.fill(B::norm2, weight("norm2"), {c});
    slots.fill(B::up, {{weight("mlp.w_gate")}, {weight("mlp.w_up")}}, {2 * inner, c});
    slots.fill(B::down, weight("mlp.w_down"), {c, inner});
  }

  Source add_stage(int stage, const Source& begin) {
    using U = Ltx25VaeUpsample;
    const std::string module = "det_stages." + std::to_string(stage) + ".",
                      path = "stage." + std::to_string(stage);
    Source hidden = begin;
    const int layers = blocks::layer_count(file_, at_ + module);
    for (int i = 0; i < layers; ++i) {
      const std::string here = path + ".layer." + std::to_string(i);
      Block block = graph_.add<Ltx25VaeLayer>(here);
      block.link(Ltx25VaeLayer::hidden, hidden);
      fill_layer(block, here, module + std::to_string(i) + ".", o_.sees[std::size_t(stage)]);
      hidden = block[Ltx25VaeLayer::out];
    }
    const Neighbourhood& stride = o_.strides[std::size_t(stage)];
    const std::string grown = "upsamples." + std::to_string(stage) + ".proj";
    const std::int64_t rows = size(grown + ".weight", 0), each = stride[0] * stride[1] * stride[2];
    if (rows < each || rows % each != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + at_ + grown + ".weight' has " + std::to_string(rows) +
                      " rows, which are no channels of " + std::to_string(each) +
                      " cells. The file is damaged or of another model.");
    Block block = graph_.add<U>(path + ".upsample");
    block.link(U::hidden, hidden).set(U::frames, stride[0]).set(U::rows, stride[1]);
    block.set(U::columns, stride[2]);
    block.set(U::fewer, stage + 1 == stages_ ? more_frames() * frames_ : 0);
    blocks::Slots slots(file_, block, path + ".upsample");
    linear(slots, U::weight, U::bias, grown, rows, channels_);
    channels_ = rows / each;
    return block[U::out];
  }

  Source add_level() {
    using B = Ltx25VaeLevel;
    Block block = graph_.add<B>("pixels.level");
    block.set(B::level, o_.level);
    const std::int64_t waves = size("t_embedder.mlp.0.weight", 1),
                       inner = size("t_embedder.mlp.0.weight", 0);
    blocks::Slots slots(file_, block, "pixels.level");
    linear(slots, B::in, B::in_bias, "t_embedder.mlp.0", inner, waves);
    linear(slots, B::middle, B::middle_bias, "t_embedder.mlp.2", inner, inner);
    linear(slots, B::last, B::last_bias, "shared_adaln.proj", 7 * channels_, inner);
    return block[B::out];
  }

  Source add_pixels(const Source& context, const Source& noise) {
    using N = Ltx25NoiseIn;
    using P = Ltx25PixelLayer;
    using O = Ltx25ImageOut;
    const Source level = add_level();
    numbers_ = size("conv_in_x_t.weight", 1);
    Block in = graph_.add<N>("pixels.in");
    in.link(N::noise, noise).link(N::context, context);
    blocks::Slots slots(file_, in, "pixels.in");
    linear(slots, N::weight, N::bias, "conv_in_x_t", channels_, numbers_);
    Source hidden = in[N::out];
    const int layers = blocks::layer_count(file_, at_ + "diff_blocks.");
    for (int i = 0; i < layers; ++i) {
      const std::string path = "pixels.layer." + std::to_string(i),
                        module = "diff_blocks." + std::to_string(i) + ".";
      Block block = graph_.add<P>(path);
      block.link(Ltx25VaeLayer::hidden, hidden).link(P::context, context).link(P::mod, level);
      fill_layer(block, path, module, o_.pixels_see);
      blocks::Slots more(file_, block, path);
      linear(more, P::context_weight, P::context_bias, module + "context_proj", channels_,
             channels_);
      more.fill(P::table, at_ + module + "scale_shift_table", {7, channels_});
      hidden = block[Ltx25VaeLayer::out];
    }
    while (3 * patch_ * patch_ < numbers_) ++patch_;
    if (3 * patch_ * patch_ != numbers_)
      throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": a cell of its decoder has " +
                                               std::to_string(numbers_) +
                                               " numbers, which are no square of pixels.");
    Block out = graph_.add<O>("pixels.out");
    out.link(O::hidden, hidden).set(O::side, patch_);
    blocks::Slots last(file_, out, "pixels.out");
    last.fill(O::norm, at_ + "norm_out.weight", {channels_});
    linear(last, O::weight, O::bias, "conv_out", numbers_, channels_);
    return out[O::out];
  }

  Value told(const std::string& tensor) const {
    std::vector<double> numbers(static_cast<std::size_t>(latent_));
    check(service<heddle_checkpoint_service>().numbers(file_.raw(), (statistics_ + tensor).c_str(),
                                                       std::uint32_t(latent_), numbers.data()));
    std::vector<Value> values;
    for (const double number : numbers) values.push_back(value_of(number));
    return list_of(values);
  }
  void add_settings() {
    graph_.setting("family", "ltx25_vae");
    graph_.setting("scaling_factor", 1.0);
    graph_.setting("shift_factor", 0.0);
    graph_.setting("latent_channels", latent_);
    graph_.setting("downscale", side_ * patch_);
    graph_.setting("frame_downscale", frames_);
    graph_.setting("pixel_channels", std::int64_t{3});
    graph_.setting("cell_noise", list_of({value_of(frames_), value_of(side_), value_of(numbers_)}));
    graph_.setting("statistics_means", told("mean-of-means"));
    graph_.setting("statistics_deviations", told("std-of-means"));
  }

  const Checkpoint& file_;
  const std::string at_;
  const Ltx25DecoderOptions o_;
  Blocks& graph_;
  std::string statistics_ = "per_channel_statistics.";
  int stages_ = 0;
  // Of a cell of the latent: frames and cells of a side behind the stages; of those, pixels of a
  // side and numbers.
  std::int64_t frames_ = 1, side_ = 1, patch_ = 1, numbers_ = 0;
  std::int64_t latent_ = 0, channels_ = 0;  // channels of the latent, and of what runs
};

}  // namespace

int Ltx25Decoder::match(const Checkpoint& file, const Value&) {
  return blocks::prefix_before(file, kPixelLayer) ? 100 : 0;
}

void Ltx25Decoder::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const auto prefix = blocks::prefix_before(file, kPixelLayer);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no decoder of LTX 2.5");
  Ltx25DecoderBuilder(file, *prefix, graph).run();
}

}  // namespace heddle::vae
