#include "ltx25_decoder.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "neighbour_attention.h"
#include "piece_configs.h"
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

// Over 15 members: what a walk over the decoder has come to, and what is told of a stage.
class Ltx25DecoderBuilder {
 public:
  // piece: none of whole videos.
  Ltx25DecoderBuilder(const Checkpoint& file, std::string prefix,
                      const std::optional<VaePiece>& piece, Blocks& graph)
      : file_(file), at_(prefix + "decoder."), o_(file), piece_(piece), graph_(graph) {
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

  void run(const Value& config) {
    if (piece_) return run_stage();
    Source hidden = add_begin(graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT));
    for (int stage = 0; stage < stages_; ++stage) hidden = add_stage(stage, hidden);
    graph_.output("image", add_pixels(hidden));
    add_settings(config);
  }

 private:
  // The layers of one size are a stage, with what makes it larger; so are those of pixels.
  void run_stage() {
    latent_ = size("conv_in.weight", 1), channels_ = size("conv_in.weight", 0);
    if (piece_->stage > stages_)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": there is no stage " + std::to_string(piece_->stage) +
                      " of its decoder, it has " + std::to_string(stages_ + 1));
    const int stage = int(piece_->stage);
    for (int i = 0; i < stage; ++i) {
      const Neighbourhood& stride = o_.strides[std::size_t(i)];
      channels_ = size("upsamples." + std::to_string(i) + ".proj.weight", 0) /
                  (stride[0] * stride[1] * stride[2]);
      here_ *= stride[1];
    }
    Source hidden;
    if (stage == 0) {
      hidden = add_begin(input("z", 0, latent_));
    } else {
      hidden = input("hidden", 0, channels_);
    }
    if (stage < stages_)
      graph_.output("hidden", add_stage(stage, hidden));
    else
      graph_.output("image", add_pixels(hidden));
    add_piece_settings(stage);
  }
  void add_piece_settings(int stage) {
    const std::int64_t more = stage < stages_ ? o_.strides[std::size_t(stage)][0] : 1,
                       cut = stage + 1 == stages_ ? more_frames() * frames_ : 0;
    graph_.setting("family", "ltx25_vae");
    graph_.setting("piece", Record()
                                .set("lag", value_of(lag_))
                                .set("more", value_of(more))
                                .set("least", value_of(least_))
                                .set("cut", value_of(cut))
                                .set("axis", value_of(std::int64_t{stage == 0 ? 2 : 1}))
                                .set("shapes", shapes_.value())
                                .value());
  }
  // Of a piece: frames 0 are as many as it has.
  Source input(const std::string& name, std::int64_t frames, std::int64_t channels) {
    shapes_.set(name, list_of({value_of(frames), value_of(here_), value_of(channels)}));
    return graph_.input(names_.emplace_back(name).c_str(), HEDDLE_INPUT_LOOP_INVARIANT);
  }
  // What a block keeps of a piece for the next one: so many frames.
  template <class B>
  void keep(Block& block, std::int64_t frames) {
    const std::string name = "kept." + std::to_string(++kept_);
    if (!piece_->begins) block.link(B::kept, input(name, frames, channels_));
    if (!piece_->ends) graph_.output(names_.emplace_back(name).c_str(), block[B::keeps]);
  }
  // A cell sees as many frames before its own and behind it: a piece makes its frames late.
  void keep_neighbours(Block& block, const Neighbourhood& sees) {
    using B = Ltx25VaeLayer;
    const std::int64_t before = sees[0] / 2, behind = sees[0] - 1 - before;
    if (!piece_ || sees[0] < 2) return;
    block.set(B::before, piece_->begins ? 0 : before).set(B::behind, piece_->ends ? 0 : behind);
    block.set(B::keep, piece_->ends ? 0 : sees[0] - 1);
    keep<B>(block, sees[0] - 1);
    lag_ += behind;
    least_ = std::max(least_, before + 1);  // the first frame sees as many as any
  }

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
    block.link(B::z, z).set(B::more, piece_ ? 0 : more_frames());
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
      keep_neighbours(block, o_.sees[std::size_t(stage)]);
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
    block.set(U::fewer, stage + 1 == stages_ && !piece_ ? more_frames() * frames_ : 0);
    block.set(U::begins, !piece_ || piece_->begins);
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

  // Of a piece a layer makes its frames late, so the next one is told of them later.
  Source delayed(const Source& context, int layer) {
    using D = Ltx25VaeDelay;
    const std::int64_t late = o_.pixels_see[0] - 1 - o_.pixels_see[0] / 2;
    if (!piece_ || layer == 0 || late == 0) return context;
    Block block = graph_.add<D>("pixels.delay." + std::to_string(layer));
    block.link(D::piece, context).set(D::late, piece_->ends ? 0 : late);
    keep<D>(block, late);
    return block[D::out];
  }

  Source add_pixels(const Source& begin) {
    using N = Ltx25NoiseIn;
    using P = Ltx25PixelLayer;
    using O = Ltx25ImageOut;
    const Source level = add_level();
    numbers_ = size("conv_in_x_t.weight", 1);
    Source context = begin;
    const Source noise = piece_ ? input("cell_noise", 0, numbers_)
                                : graph_.input("cell_noise", HEDDLE_INPUT_LOOP_INVARIANT);
    Block in = graph_.add<N>("pixels.in");
    in.link(N::noise, noise).link(N::context, context);
    blocks::Slots slots(file_, in, "pixels.in");
    linear(slots, N::weight, N::bias, "conv_in_x_t", channels_, numbers_);
    Source hidden = in[N::out];
    const int layers = blocks::layer_count(file_, at_ + "diff_blocks.");
    for (int i = 0; i < layers; ++i) {
      const std::string path = "pixels.layer." + std::to_string(i),
                        module = "diff_blocks." + std::to_string(i) + ".";
      context = delayed(context, i);
      Block block = graph_.add<P>(path);
      block.link(Ltx25VaeLayer::hidden, hidden).link(P::context, context).link(P::mod, level);
      fill_layer(block, path, module, o_.pixels_see);
      blocks::Slots more(file_, block, path);
      linear(more, P::context_weight, P::context_bias, module + "context_proj", channels_,
             channels_);
      more.fill(P::table, at_ + module + "scale_shift_table", {7, channels_});
      keep_neighbours(block, o_.pixels_see);
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
  void add_settings(const Value& config) {
    graph_.setting("family", "ltx25_vae");
    graph_.setting("scaling_factor", 1.0);
    graph_.setting("shift_factor", 0.0);
    graph_.setting("latent_channels", latent_);
    graph_.setting("downscale", side_ * patch_);
    graph_.setting("frame_downscale", frames_);
    graph_.setting("pixel_channels", std::int64_t{3});
    graph_.setting("cell_noise", list_of({value_of(frames_), value_of(side_), value_of(numbers_)}));
    const bool doubles =
        std::ranges::all_of(o_.strides, [](const Neighbourhood& stride) { return stride[0] <= 2; });
    if (doubles) {
      graph_.setting("piece_configs", piece_configs(config, stages_ + 1));
      graph_.setting("frames_behind", more_frames());
    }
    graph_.setting("statistics_means", told("mean-of-means"));
    graph_.setting("statistics_deviations", told("std-of-means"));
  }

  const Checkpoint& file_;
  const std::string at_;
  const Ltx25DecoderOptions o_;
  const std::optional<VaePiece> piece_;
  Blocks& graph_;
  std::string statistics_ = "per_channel_statistics.";
  int stages_ = 0;
  // Of a cell of the latent: frames and cells of a side behind the stages; of those, pixels of a
  // side and numbers.
  std::int64_t frames_ = 1, side_ = 1, patch_ = 1, numbers_ = 0;
  std::int64_t latent_ = 0, channels_ = 0;  // channels of the latent, and of what runs
  // Of a stage: how many times a side of the latent is a side of what it takes, the frames that it
  // makes its own late, how many it has to make at first, and what it reads.
  std::int64_t here_ = 1, lag_ = 0, least_ = 1, kept_ = 0;
  Record shapes_;
  std::deque<std::string> names_;  // of inputs and outputs, as long as the build lasts
};

}  // namespace

int Ltx25Decoder::match(const Checkpoint& file, const Value&) {
  return blocks::prefix_before(file, kPixelLayer) ? 100 : 0;
}

void Ltx25Decoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const auto prefix = blocks::prefix_before(file, kPixelLayer);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no decoder of LTX 2.5");
  Ltx25DecoderBuilder(file, *prefix, asked_piece(file, config), graph).run(config);
}

}  // namespace heddle::vae
